// PackedSequence: the valid steps of a Sequence, without padding.
//
// A packed row is one valid step of one row of the batch. Packed rows are
// ordered by step, then by row of the batch. A masked step does not change the
// state of its row, so a pass computes the packed rows only.
//
// Where all steps are valid, packed row e is step e / batch of row e % batch,
// and the rows that it reads and writes are computed. Only with masked steps
// are there lists.
#ifndef TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_
#define TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/macros.h"
#include "core/sequence.h"

namespace tf_lstm_ops {

// What belongs to packed row `index`.
struct PackedRow {
  int64_t index;
  int64_t batch;   // its row of the batch
  int64_t input;   // its row of x as [rows, I]
  int64_t output;  // its row of the outputs as [rows, P], where P is the size
                   // of an output
  // The number of preceding packed rows of the same row of the batch.
  int64_t ordinal;
  // The last of them, or -1, and its row of the outputs, undefined without it.
  int64_t previous, previous_output;
};

// Copies share the lists, which do not change while they are shared.
struct PackedSequence {
  int64_t batch = 0;
  int64_t steps = 0;

  PackedSequence() = default;
  // The lengths and the mask of `sequence` must lie in host memory. Only the
  // constructor reads them. Steps beyond the longest length are left out; a
  // batch of no rows has no steps. Throws std::bad_alloc where steps are
  // masked.
  explicit PackedSequence(const Sequence& sequence) { Assign(sequence); }
  // As the constructor. Reuses the memory of the lists where no copy shares
  // them.
  void Assign(const Sequence& sequence);

  // V, the number of valid steps.
  TF_LSTM_OPS_INLINE int64_t size() const { return Begin(steps); }
  // Whether all steps are valid, so that there are no lists.
  TF_LSTM_OPS_INLINE bool is_full() const { return rows_ == nullptr; }

  // A step's first packed row, V for step `steps`.
  TF_LSTM_OPS_INLINE int64_t Begin(int64_t step) const {
    return is_full() ? step * batch : begin_[step];
  }
  // The first packed row of a step whose row of the batch is `row` or a later
  // one; the next step's first packed row if there is none.
  int64_t Find(int64_t step, int64_t row) const;

  TF_LSTM_OPS_INLINE PackedRow At(int64_t e) const {
    if (!is_full()) return rows_[e];
    const int64_t step = StepOf(e);
    return OfStep(step, e - step * batch);
  }
  // Packed row at.index + 1. Cheaper than At, which divides. What it returns
  // behind the last packed row is undefined.
  TF_LSTM_OPS_INLINE PackedRow Next(const PackedRow& at) const {
    if (!is_full()) return rows_[at.index + 1];
    if (at.batch + 1 == batch) return OfStep(at.ordinal + 1, 0);
    return {at.index + 1,
            at.batch + 1,
            at.input + input_.of_row,
            at.output + output_.of_row,
            at.ordinal,
            at.previous < 0 ? -1 : at.previous + 1,
            at.previous_output + output_.of_row};
  }
  // Packed row first.index + count, of the same step. Cheaper than At.
  TF_LSTM_OPS_INLINE PackedRow Behind(const PackedRow& first,
                                      int64_t count) const {
    if (!is_full()) return rows_[first.index + count];
    return {first.index + count,
            first.batch + count,
            first.input + count * input_.of_row,
            first.output + count * output_.of_row,
            first.ordinal,
            first.previous < 0 ? -1 : first.previous + count,
            first.previous_output + count * output_.of_row};
  }
  // The packed row `of.previous`, which must exist.
  TF_LSTM_OPS_INLINE PackedRow Before(const PackedRow& of) const {
    if (!is_full()) return rows_[of.previous];
    return {of.previous,
            of.batch,
            of.input - input_.of_step,
            of.previous_output,
            of.ordinal - 1,
            of.previous < batch ? -1 : of.previous - batch,
            of.previous_output - output_.of_step};
  }
  // The distance of the rows of x of `count` packed rows from `from` on, if it
  // is the same for all of them in a full batch, else 0.
  TF_LSTM_OPS_INLINE int64_t InputStride(const PackedRow& from,
                                         int64_t count) const {
    if (!is_full()) return 0;
    if (batch == 1) return input_.of_step;
    const bool steps_follow = input_.of_step == batch * input_.of_row;
    return steps_follow || from.batch + count <= batch ? input_.of_row : 0;
  }
  // Of a row of the batch: its last packed row, or -1.
  TF_LSTM_OPS_INLINE int64_t Last(int64_t row) const {
    if (is_full()) return steps > 0 ? (steps - 1) * batch + row : -1;
    return last_[row];
  }

  // The same steps of tensors [V, .] without padding, in place of x where
  // `input` is set, and of the outputs where `output` is set. Their row
  // packed_row[r] is row r of the tensors with padding. It is the packed row of
  // a sequence in ascending order of time; `packed_row` is not read if all
  // steps are valid. Throws std::bad_alloc where steps are masked.
  PackedSequence WithoutPadding(const std::vector<int64_t>& packed_row,
                                bool input, bool output) const;

 private:
  // The row of a tensor that belongs to a step of a row of the batch.
  struct Affine {
    int64_t first = 0, of_step = 0, of_row = 0;

    TF_LSTM_OPS_INLINE int64_t Row(int64_t step, int64_t row) const {
      return first + step * of_step + row * of_row;
    }
  };
  struct Lists {
    std::vector<int64_t> begin, last;
    std::vector<PackedRow> rows;
  };

  // Of a full batch: a step of a row of the batch.
  TF_LSTM_OPS_INLINE PackedRow OfStep(int64_t step, int64_t row) const {
    const int64_t e = step * batch + row, output = output_.Row(step, row);
    return {e,
            row,
            input_.Row(step, row),
            output,
            step,
            step == 0 ? -1 : e - batch,
            output - output_.of_step};
  }
  // e / batch. The product is the quotient or one less.
  TF_LSTM_OPS_INLINE int64_t StepOf(int64_t e) const {
    __extension__ using Wide = unsigned __int128;
    const auto step = static_cast<int64_t>(
        static_cast<Wide>(reciprocal_) * static_cast<uint64_t>(e) >> 64);
    return step + (e - step * batch >= batch ? 1 : 0);
  }
  Affine AffineOf(bool time_major, int64_t time, bool reversed) const;
  static void ListValidSteps(const Sequence& sequence, int64_t steps,
                             Lists* lists);
  void UseLists();

  uint64_t reciprocal_ = 0;  // (2^64 - 1) / batch
  Affine input_, output_;
  // Null where all steps are valid.
  const PackedRow* rows_ = nullptr;  // [V + 1]
  const int64_t* begin_ = nullptr;   // [steps + 1]
  const int64_t* last_ = nullptr;    // [batch]
  std::shared_ptr<Lists> lists_;     // unused where all steps are valid
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_
