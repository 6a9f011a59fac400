// ForwardPass: the forward pass of a layer direction as one job, all but the
// cell's equations and the products before them, which cell_forward.h adds.
// Compiled once for all cells.
//
// The input product x W is computed for many steps at once. Work is divided by
// hidden units, each with all of its gates. So the cell's equations are applied
// to the accumulators of the recurrent product while these are in registers. A
// step is one phase; with a projection it is two.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_

#include <algorithm>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/forward_weights.h"
#include "backends/cpu/simd/scratch.h"
#include "backends/cpu/simd/single_step.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class ForwardPass {
 public:
  using Element = T;

  // With `keeps_weights` the packed weights are outside of the scratch memory.
  // With `filled` they have been packed before.
  ForwardPass(const EngineForward<T>& args, const CellShape& shape, int threads,
              bool keeps_weights, bool filled)
      : args_(args),
        shape_(shape),
        keeps_weights_(keeps_weights),
        filled_(filled),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        padded_(RoundUpToLanes<T>(cell_)),
        batch_(args.packed->batch),
        packed_rows_(args.packed->size()),
        steps_(args.packed->steps),
        weights_(args, shape),
        once_(args),
        packs_(keeps_weights || shape_.first_recurrent != 0 ||
               shape_.recurrent != shape_.input ||
               !SingleStep<T>::Serves(args)),
        chunk_(ChunkRows()),
        slices_(SliceCount(threads)),
        slice_rows_(slices_ > 0 ? Blocks(batch_, slices_) : 0),
        group_(Group(threads)),
        begin_(args.packed->begin.data()),
        batch_row_(args.packed->batch_row.data()),
        input_row_(args.packed->input_row.data()),
        output_row_(args.packed->output_row.data()),
        previous_(args.packed->previous.data()),
        ordinal_(args.packed->ordinal.data()) {}

  void PlaceWeights(Scratch<T>* memory) {
    if (packs_) weights_.Place(memory);
  }

  // Assigns the pieces of scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    if (!keeps_weights_) PlaceWeights(scratch);
    if (!packs_) once_.Place(scratch, threads);
    const int64_t rows = slices_ > 0 ? 0 : Min(packed_rows_, chunk_ + batch_);
    z_ = scratch->Take(rows * shape_.input * padded_);
    state_ = args_.final_c.data ? args_.final_c.data
             : shape_.has_state ? scratch->Take(batch_ * cell_)
                                : nullptr;
    unprojected_h_ = scratch->Take(Projected() ? batch_ * cell_ : 0);
    effective_h_ =
        scratch->Take(2 * EffectiveHSets() * batch_ * FactorWords(hidden_));
    rounded_x_ =
        scratch->Take(RoundsX() ? packed_rows_ * FactorWords(input_) : 0);
    dropped_x_ = scratch->Take(threads * DroppedXSize());
  }

  // Phase 0 packs the weights, or multiplies with weights that are used once.
  // With slices, phase 1 runs all steps, and an item is a slice. Else each step
  // is one phase, or two with a projection, and an item is a group of vectors
  // of units.
  int64_t Phases() const { return slices_ > 0 ? 2 : steps_ * StepPhases() + 1; }
  int64_t Items(int64_t phase) const {
    if (phase == 0) return packs_ ? Blocks(padded_, group_) : once_.Items();
    if (slices_ > 0) return slices_;
    const int64_t step = (phase - 1) / StepPhases();
    if (begin_[step] == begin_[step + 1]) return 0;
    return Blocks(Projects(phase) ? hidden_ : padded_, group_);
  }

  void Run(int64_t phase, int64_t item, int thread) {
    const int64_t begin = item * group_;
    const int64_t end = begin + group_;
    if (phase == 0 && !packs_) return once_.Run(item, thread);
    if (phase == 0) {
      if (!filled_) weights_.Pack(begin, end);
      for (int64_t u = begin; u < Min(end, padded_); u += kL) LoadState(u);
      if (RoundsX()) RoundX(item);
      return;
    }
    if (slices_ > 0) return RunSlice(item, thread);
    const int64_t step = (phase - 1) / StepPhases();
    if (Projects(phase)) {
      for (int64_t u = begin; u < Min(end, hidden_); u += kL) {
        ProjectOutput(begin_[step], begin_[step + 1], u);
      }
      return;
    }
    // Only this item reads and writes z of its units.
    const int64_t in_chunk = begin_[step] - ChunkOf(step) * chunk_;
    T* z = z_ + in_chunk * shape_.input * padded_;
    if (!packs_) {
      MultiplyOnce(begin, Min(end, padded_), thread);
    } else if (BeginsChunk(step)) {
      ProjectInput({begin_[step], ChunkEnd(step), z}, begin, Min(end, padded_),
                   dropped_x_ + thread * DroppedXSize());
    }
    const Rows range = {begin_[step], begin_[step + 1], z};
    // Serpentine order, as the items.
    Step(range, begin, Min(end, padded_), phase % 2 == 1, nullptr);
  }

 protected:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  // Rows that share a read of the weights, from the cache nearest to the core.
  static constexpr int64_t kRowBlock = 16 * kRows;

  // Packed rows [begin, end) and their z, [end - begin, input parts, padded],
  // or null.
  struct Rows {
    int64_t begin, end;
    T* z;
  };

  ~ForwardPass() = default;

  // z = x W + bias, for units [u, u_end). With dropout x is `dropped_x`.
  virtual void ProjectUnits(const Rows& range, int64_t u, int64_t u_end,
                            const T* dropped_x) = 0;
  // One step, for units [u, u_end): z + h R, then the cell's equations. If
  // range.z is null, z = x W + bias is computed first. With `reverse` the last
  // units are first.
  virtual void Step(const Rows& range, int64_t u, int64_t u_end, bool reverse,
                    const T* dropped_x) = 0;

  bool Projected() const { return args_.config.projected(); }

  // Words of a row that is multiplied with packed weights.
  bool Rounds() const { return RoundsFactors(weights_.format()); }
  int64_t FactorWords(int64_t width) const {
    return Rounds() ? Words(width, weights_.format()) : width;
  }

  // With dropout, applying the multipliers also rounds x.
  bool RoundsX() const {
    return Rounds() && args_.weights.input && !args_.input_dropout.data;
  }

  // Number of copies of h after dropout or rounding; 0: products read h itself.
  int64_t EffectiveHSets() const {
    return args_.recurrent_dropout.data ? shape_.recurrent : Rounds() ? 1 : 0;
  }

  int Block(int part) const { return args_.config.gate_order.block[part]; }

  // The bias of a pre-activation.
  V Bias(int part, int64_t u) const {
    const int64_t at = Block(part) * cell_ + u;
    const auto load = [&](const T* bias, bool has_part) {
      return bias && has_part ? LoadN(bias + at, cell_ - u) : V{};
    };
    V bias = load(args_.weights.input_bias, part < shape_.input) +
             load(args_.weights.recurrent_bias, part >= shape_.first_recurrent);
    if (shape_.has_forget_bias && part == kGateF) {
      bias = bias + static_cast<T>(args_.config.forget_bias);
    }
    return bias;
  }

  // Stores a vector as elements u, u + 1, ... of a row of a product.
  void StoreFactor(V v, T* row, int64_t u, int64_t width) const {
    if constexpr (kDotsPairs && std::is_same_v<T, float>) {
      if (Rounds()) {
        StorePairs(v, reinterpret_cast<BFloat16Pair*>(row) + u / 2, width - u);
        return;
      }
    }
    StoreN(v, row + u, width - u);
  }

  // z of packed row e.
  T* Z(const Rows& rows, int64_t e, int part, int64_t u) const {
    return rows.z + ((e - rows.begin) * shape_.input + part) * padded_ + u;
  }

  T* H(int64_t e) const { return args_.h + output_row_[e] * args_.h_stride; }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0.data + batch_row_[e] * hidden_
                            : H(previous_[e]);
  }

  // h of a row of the batch after `ordinal` valid steps, after dropout or
  // rounding. Two buffers alternate, since other items still read the preceding
  // step's h.
  T* EffectiveH(int64_t row, int64_t ordinal, int p) const {
    return effective_h_ +
           (((ordinal & 1) * EffectiveHSets() + p) * batch_ + row) *
               FactorWords(hidden_);
  }

  void StoreEffectiveH(V h, int64_t row, int64_t ordinal, int64_t u) {
    for (int p = 0; p < EffectiveHSets(); ++p) {
      V seen = h;
      if (args_.recurrent_dropout.data) {
        const T* keep =
            args_.recurrent_dropout.data +
            (Block(shape_.first_recurrent + p) * batch_ + row) * hidden_ + u;
        seen = seen * LoadN(keep, hidden_ - u);
      }
      StoreFactor(seen, EffectiveH(row, ordinal, p), u, hidden_);
    }
  }

  const T* X(int64_t e) const {
    return args_.x + input_row_[e] * args_.x_stride;
  }

  const EngineForward<T>& args_;
  const CellShape shape_;
  const bool keeps_weights_, filled_;
  const int64_t input_, cell_, hidden_, padded_, batch_, packed_rows_, steps_;
  ForwardWeights<T> weights_;
  SingleStep<T> once_;
  const bool packs_;
  const int64_t chunk_;                // packed rows; see ChunkRows
  const int64_t slices_, slice_rows_;  // see SliceCount
  const int64_t group_;                // units of an item
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  const int64_t* ordinal_;
  T* z_ = nullptr;              // [., input parts, padded] of a chunk; unused
                                // with slices
  T* state_ = nullptr;          // [B, H]
  T* unprojected_h_ = nullptr;  // [B, H]
  T* effective_h_ = nullptr;    // [2, 1 or recurrent parts, B, P]
  T* rounded_x_ = nullptr;      // [V, I]
  T* dropped_x_ = nullptr;      // [threads, kRowBlock, input parts, I]

 private:
  static constexpr int64_t kOnceVectors = 8;
  static constexpr int64_t kMinSliceRows = 2 * kRows;
  static constexpr int64_t kMaxSliceRows = kRowBlock;
  static constexpr int64_t kChunkBytes = 1 << 20;
  static constexpr int64_t kItemMultiplyAdds = 100000;  // a microsecond or more

  // With many rows of the batch, all steps run in one phase, and an item is a
  // slice of the batch. No thread waits for another one between steps, and the
  // state of the slice stays in the thread's cache. Each thread reads all
  // weights in each step, which pays while a slice has several tiles of rows.
  // Returns the number of slices, or 0 without slices.
  int64_t SliceCount(int threads) const {
    if (!packs_ || batch_ < kMinSliceRows * threads) return 0;
    return Blocks(Blocks(batch_, kMaxSliceRows), threads) * threads;
  }

  // The input product is computed for a chunk of steps at a time, so that z is
  // still in the cache when it is read. Chunk c holds the steps whose first
  // packed row is in [c, c + 1) * chunk_, at most chunk_ + batch_ packed rows.
  int64_t ChunkRows() const {
    const int64_t row =
        shape_.input * padded_ * static_cast<int64_t>(sizeof(T));
    return Max(Max(batch_, kRowBlock), kChunkBytes / row);
  }
  int64_t ChunkOf(int64_t step) const { return begin_[step] / chunk_; }
  bool BeginsChunk(int64_t step) const {
    int64_t before = step;  // the last step before this one with valid rows
    while (before > 0 && begin_[before] == begin_[step]) --before;
    return begin_[step] == 0 || ChunkOf(before) != ChunkOf(step);
  }
  int64_t ChunkEnd(int64_t step) const {
    const int64_t chunk = ChunkOf(step);
    while (step < steps_ && ChunkOf(step) == chunk) ++step;
    return begin_[step];
  }

  // Units of an item. Each thread gets several items, but an item has enough
  // work to make scheduling it cheap.
  int64_t Group(int threads) const {
    const int64_t rows = Max(packed_rows_ / Max(steps_, 1), 1);
    const int64_t work = rows * shape_.recurrent * kL * Max(hidden_, 1);
    const int64_t share = Max(Blocks(padded_ / kL, threads), 1);  // in vectors
    if (!packs_) return Min(kOnceVectors, share) * kL;
    const int64_t items = Max(share * work / kItemMultiplyAdds, 1);
    return Blocks(share, items) * kL;
  }

  int64_t StepPhases() const { return Projected() ? 2 : 1; }
  bool Projects(int64_t phase) const { return Projected() && phase % 2 == 0; }

  int64_t DroppedXSize() const {
    return args_.input_dropout.data
               ? kRowBlock * shape_.input * FactorWords(input_)
               : 0;
  }

  // All steps of a slice of the batch.
  void RunSlice(int64_t slice, int thread) {
    T* dropped_x = args_.input_dropout.data
                       ? dropped_x_ + thread * DroppedXSize()
                       : nullptr;
    for (int64_t step = 0; step < steps_; ++step) {
      const Rows range = {SliceBegin(slice, step), SliceBegin(slice + 1, step),
                          nullptr};
      if (range.begin == range.end) continue;
      if (dropped_x) DropX(range.begin, range.end, dropped_x);
      Step(range, 0, padded_, false, dropped_x);
      if (!Projected()) continue;
      for (int64_t u = 0; u < hidden_; u += kL) {
        ProjectOutput(range.begin, range.end, u);
      }
    }
  }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const {
    const int64_t row = Min(slice * slice_rows_, batch_);
    const int64_t begin = begin_[step], end = begin_[step + 1];
    if (end - begin == batch_) return begin + row;
    return std::lower_bound(batch_row_ + begin, batch_row_ + end, row) -
           batch_row_;
  }

  void LoadState(int64_t u) {
    const int64_t width = cell_ - u;
    const T* initial = shape_.has_cell_state ? args_.c0.data : args_.h0.data;
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * cell_ + u;
      if (shape_.has_state) {
        StoreN(LoadN(initial + at, width), state_ + at, width);
      }
      if (EffectiveHSets() > 0 && u < hidden_) {
        StoreEffectiveH(LoadN(args_.h0.data + b * hidden_ + u, hidden_ - u), b,
                        0, u);
      }
    }
  }

  // Rounds an item's share of the packed rows of x to pairs.
  void RoundX(int64_t item) {
    const int64_t share = Blocks(packed_rows_, Items(0));
    const int64_t end = Min((item + 1) * share, packed_rows_);
    for (int64_t e = item * share; e < end; ++e) {
      RoundRow(X(e), nullptr, rounded_x_ + e * FactorWords(input_));
    }
  }

  // A row of x, multiplied by `keep` unless that is null.
  void RoundRow(const T* x, const T* keep, T* to) const {
    for (int64_t i = 0; i < input_; i += kL) {
      V v = LoadN(x + i, input_ - i);
      if (keep) v = v * LoadN(keep + i, input_ - i);
      StoreFactor(v, to, i, input_);
    }
  }

  // z = x W + bias, for units [u_begin, u_end).
  void ProjectInput(const Rows& all, int64_t u_begin, int64_t u_end,
                    T* dropped_x) {
    // With dropout, a block of rows of x serves all units.
    const bool drops = args_.input_dropout.data != nullptr;
    const int64_t block = drops ? kRowBlock : all.end - all.begin;
    for (int64_t e = all.begin; e < all.end; e += block) {
      const Rows some = {e, Min(e + block, all.end), Z(all, e, 0, 0)};
      if (drops) DropX(some.begin, some.end, dropped_x);
      ProjectUnits(some, u_begin, u_end, drops ? dropped_x : nullptr);
    }
  }

  // z = x W + h R + bias of the only step, for units [u_begin, u_end).
  void MultiplyOnce(int64_t u_begin, int64_t u_end, int thread) {
    const Rows all = {0, packed_rows_, z_};
    for (int64_t u = u_begin; u < u_end; u += kL) {
      LoadState(u);
      for (int p = 0; p < shape_.input; ++p) {
        const V bias = Bias(p, u);
        for (int64_t e = 0; e < packed_rows_; ++e) Store(bias, Z(all, e, p, u));
      }
    }
    once_.Add(u_begin, u_end, thread,
              [&](int64_t e, int p, int64_t u) { return Z(all, e, p, u); });
  }

  // h = Wp m of packed rows [begin, end), one vector of units.
  void ProjectOutput(int64_t begin, int64_t end, int64_t u) {
    MultiplyBlock<1>(
        [&](int64_t e) { return unprojected_h_ + batch_row_[e] * cell_; },
        weights_.projection(u), cell_, begin, end, hidden_ - u, false,
        WeightFormat::kElements, [&](int64_t e) { return H(e) + u; });
    for (int64_t e = begin; EffectiveHSets() > 0 && e < end; ++e) {
      StoreEffectiveH(LoadN(H(e) + u, hidden_ - u), batch_row_[e],
                      ordinal_[e] + 1, u);
    }
  }

  // x of packed rows [begin, end) after dropout: [end - begin, gates, I].
  void DropX(int64_t begin, int64_t end, T* to) const {
    for (int64_t e = begin; e < end; ++e) {
      for (int p = 0; p < shape_.input; ++p, to += FactorWords(input_)) {
        RoundRow(X(e),
                 args_.input_dropout.data +
                     (Block(p) * batch_ + batch_row_[e]) * input_,
                 to);
      }
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
