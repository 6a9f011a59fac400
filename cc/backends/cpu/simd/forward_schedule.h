// ForwardSchedule: the order of the work of a forward pass. The result does not
// depend on it.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SCHEDULE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SCHEDULE_H_

#include <algorithm>

#include "backends/cpu/simd/gemm.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

class ForwardSchedule {
 public:
  // How the work is divided.
  enum class Regime {
    // One step. The weights are used once, so they are read where they lie.
    kOnce,
    // Few rows: an item is a group of units, each with all of its gates. Each
    // step is a phase, or two with a projection or a cell that reduces rows.
    kUnits,
    // Many rows: an item is a slice of the batch and computes all steps in one
    // phase. No thread waits for another one between steps, and the state of
    // the slice stays in the thread's cache. Each thread reads all weights in
    // each step, which pays while a slice has several tiles of rows.
    kSlices,
  };
  // What a phase does.
  enum class Work {
    kPrepare,  // packs the weights; with kOnce and few rows, sums the chains
    kSlices,   // all steps of a slice
    kCells,    // a step up to the cell's equations
    kProject,  // the projection of a step
    kRows,     // the equations of a step's rows, of a cell that reduces rows
  };
  struct Phase {
    Work work;
    int64_t step = 0;
  };
  // Sizes in elements, but `lanes` in elements of a vector.
  struct Problem {
    const PackedSequence& rows;
    bool once;                     // whether to use Regime::kOnce
    bool projected, reduces_rows;  // not both
    int64_t units, hidden;         // `units` is a multiple of `lanes`
    int64_t lanes;
    int64_t recurrent_parts;
    int64_t z_bytes;  // of a row of z
  };

  // Rows that share a read of the weights, from the cache nearest to the core.
  static constexpr int64_t kRowBlock = 16 * kRows;

  ForwardSchedule(const Problem& problem, int threads)
      : rows_(problem.rows),
        begin_(problem.rows.begin.data()),
        regime_(Choose(problem, threads)),
        step_phases_(problem.projected || problem.reduces_rows ? 2 : 1),
        second_work_(problem.projected ? Work::kProject : Work::kRows),
        units_(problem.units),
        hidden_(problem.hidden),
        slices_(SliceCount(threads)),
        slice_rows_(slices_ > 0 ? Blocks(rows_.batch, slices_) : 0),
        chunk_rows_(
            Max(Max(rows_.batch, kRowBlock), kChunkBytes / problem.z_bytes)),
        group_(Group(problem, threads)) {}

  Regime regime() const { return regime_; }
  // Units of an item, a multiple of `lanes`.
  int64_t group() const { return group_; }

  int64_t Phases() const {
    return regime_ == Regime::kSlices ? 2 : rows_.steps * step_phases_ + 1;
  }
  Phase At(int64_t phase) const {
    if (phase == 0) return {Work::kPrepare};
    if (regime_ == Regime::kSlices) return {Work::kSlices};
    const bool cells = step_phases_ == 1 || phase % 2 == 1;
    return {cells ? Work::kCells : second_work_, (phase - 1) / step_phases_};
  }
  // The number of items of a phase. Not for phase 0 of Regime::kOnce.
  int64_t Items(int64_t phase) const {
    const Phase at = At(phase);
    if (at.work == Work::kSlices) return slices_;
    if (at.work == Work::kPrepare) return Blocks(units_, group_);
    const int64_t rows = begin_[at.step + 1] - begin_[at.step];
    if (rows == 0) return 0;
    if (at.work == Work::kRows) return rows;
    return Blocks(at.work == Work::kProject ? hidden_ : units_, group_);
  }

  // The largest number of packed rows of a step in a slice.
  int64_t slice_rows() const { return slice_rows_; }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const {
    const int64_t row = Min(slice * slice_rows_, rows_.batch);
    const int64_t begin = begin_[step], end = begin_[step + 1];
    if (end - begin == rows_.batch) return begin + row;
    const int64_t* of = rows_.batch_row.data();
    return std::lower_bound(of + begin, of + end, row) - of;
  }

  // Without slices, x W is computed for a chunk of steps at a time, so that it
  // is still in the cache when it is read. Chunk c holds the steps whose first
  // packed row is in [c, c + 1) * chunk rows.
  int64_t MaxChunkRows() const {  // packed rows
    if (regime_ == Regime::kSlices) return 0;
    return Min(rows_.size(), chunk_rows_ + rows_.batch);
  }
  // The offset of a step's first packed row from that of its chunk, c * chunk
  // rows.
  int64_t InChunk(int64_t step) const {
    return begin_[step] - ChunkOf(step) * chunk_rows_;
  }
  bool BeginsChunk(int64_t step) const {
    int64_t before = step;  // the last step before this one with valid rows
    while (before > 0 && begin_[before] == begin_[step]) --before;
    return begin_[step] == 0 || ChunkOf(before) != ChunkOf(step);
  }
  int64_t ChunkEnd(int64_t step) const {  // a packed row
    const int64_t chunk = ChunkOf(step);
    while (step < rows_.steps && ChunkOf(step) == chunk) ++step;
    return begin_[step];
  }

 private:
  static constexpr int64_t kMinSliceRows = 2 * kRows;
  static constexpr int64_t kMaxSliceRows = kRowBlock;
  static constexpr int64_t kChunkBytes = 1 << 20;
  static constexpr int64_t kOnceVectors = 8;
  static constexpr int64_t kItemMultiplyAdds = 100000;  // a microsecond or more

  static Regime Choose(const Problem& problem, int threads) {
    if (problem.once) return Regime::kOnce;
    return problem.rows.batch < kMinSliceRows * threads ? Regime::kUnits
                                                        : Regime::kSlices;
  }

  int64_t SliceCount(int threads) const {
    if (regime_ != Regime::kSlices) return 0;
    return Blocks(Blocks(rows_.batch, kMaxSliceRows), threads) * threads;
  }

  // Each thread gets several items, but an item has enough work to make
  // scheduling it cheap.
  int64_t Group(const Problem& problem, int threads) const {
    const int64_t lanes = problem.lanes;
    const int64_t share = Max(Blocks(units_ / lanes, threads), 1);  // vectors
    if (regime_ == Regime::kOnce) return Min(kOnceVectors, share) * lanes;
    const int64_t rows = Max(rows_.size() / Max(rows_.steps, 1), 1);
    const int64_t work =
        rows * problem.recurrent_parts * lanes * Max(hidden_, 1);
    const int64_t items = Max(share * work / kItemMultiplyAdds, 1);
    return Blocks(share, items) * lanes;
  }

  int64_t ChunkOf(int64_t step) const { return begin_[step] / chunk_rows_; }

  const PackedSequence& rows_;
  const int64_t* const begin_;
  const Regime regime_;
  const int64_t step_phases_;
  const Work second_work_;  // of a step with two phases
  const int64_t units_, hidden_;
  const int64_t slices_, slice_rows_, chunk_rows_, group_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SCHEDULE_H_
