#include "backends/cpu/forward_schedule.h"

#include <algorithm>

namespace tf_lstm_ops::cpu {
namespace {

// The constants were compared with others by `python3 benchmarks/engine` and
// the cases that are named here; benchmarks/NOTES.md, "Engine: one step in one
// file", has the figures. Where others were equal within 5 %, the reason is the
// choice.

// Rows. A slice reads all weights in each step, which pays from two tiles on:
// lstm,8,50,256,256 to lstm,32,50,128,128.
constexpr int64_t kMinSliceRows = 2 * kRows;
constexpr int64_t kMaxSliceRows = ForwardSchedule::kRowBlock;

// Bytes of z of a chunk, which stays in a cache of this size until it is read.
// lstm,4,50,256,256.
constexpr int64_t kChunkBytes = 1 << 20;

// Vectors of units of an item that reads the weights in place: 512 bytes of
// each row of the weights with AVX-512, so that a page is read by few items.
// Not measured alone.
constexpr int64_t kOnceVectors = 8;

// Vectors of units that are packed together: 512 bytes of each row of a gate's
// weights with AVX-512, since a row of a large layer is on another page. One
// vector took 1.4 times as long: lstm,4,25,1024,1024.
constexpr int64_t kPackingVectors = 8;

// Multiply-adds of an item, one microsecond or more of work. The thread team
// hands out an item by an atomic operation: lstm,1,100,128,128.
constexpr int64_t kItemMultiplyAdds = 100000;

ForwardSchedule::Regime Choose(const ForwardSchedule::Problem& problem,
                               int threads) {
  using Regime = ForwardSchedule::Regime;
  if (problem.once) return Regime::kOnce;
  return problem.rows.batch < kMinSliceRows * threads ? Regime::kUnits
                                                      : Regime::kSlices;
}

}  // namespace

ForwardSchedule::ForwardSchedule(const Problem& problem, int threads)
    : rows_(problem.rows),
      begin_(problem.rows.begin.data()),
      regime_(Choose(problem, threads)),
      step_phases_(problem.multiplies_m || problem.reduces_rows ? 2 : 1),
      second_work_(problem.multiplies_m ? Work::kProject : Work::kRows),
      units_(problem.units),
      hidden_(problem.hidden),
      slices_(SliceCount(threads)),
      slice_rows_(slices_ > 0 ? CeilDiv(rows_.batch, slices_) : 0),
      chunk_rows_(
          Max(Max(rows_.batch, kRowBlock), kChunkBytes / problem.z_bytes)),
      group_(Group(problem, threads)),
      packing_group_(
          Max(group_,
              problem.lanes * Min(kPackingVectors,
                                  CeilDiv(units_ / problem.lanes, threads)))) {}

int64_t ForwardSchedule::Phases() const {
  return regime_ == Regime::kSlices ? 2 : rows_.steps * step_phases_ + 1;
}

ForwardSchedule::Phase ForwardSchedule::At(int64_t phase) const {
  if (phase == 0) return {Work::kPrepare};
  if (regime_ == Regime::kSlices) return {Work::kSlices};
  const bool cells = step_phases_ == 1 || phase % 2 == 1;
  return {cells ? Work::kCells : second_work_, (phase - 1) / step_phases_};
}

int64_t ForwardSchedule::Items(int64_t phase) const {
  const Phase at = At(phase);
  if (at.work == Work::kSlices) return slices_;
  if (at.work == Work::kPrepare) return CeilDiv(units_, packing_group_);
  const int64_t rows = begin_[at.step + 1] - begin_[at.step];
  if (rows == 0) return 0;
  if (at.work == Work::kRows) return rows;
  return CeilDiv(at.work == Work::kProject ? hidden_ : units_, group_);
}

int64_t ForwardSchedule::SliceBegin(int64_t slice, int64_t step) const {
  const int64_t row = Min(slice * slice_rows_, rows_.batch);
  const int64_t begin = begin_[step], end = begin_[step + 1];
  if (end - begin == rows_.batch) return begin + row;
  const int64_t* of = rows_.batch_row.data();
  return std::lower_bound(of + begin, of + end, row) - of;
}

int64_t ForwardSchedule::MaxChunkRows() const {
  if (regime_ == Regime::kSlices) return 0;
  return Min(rows_.size(), chunk_rows_ + rows_.batch);
}

int64_t ForwardSchedule::InChunk(int64_t step) const {
  return begin_[step] - ChunkOf(step) * chunk_rows_;
}

bool ForwardSchedule::BeginsChunk(int64_t step) const {
  int64_t before = step;  // the last step before this one with valid rows
  while (before > 0 && begin_[before] == begin_[step]) --before;
  return begin_[step] == 0 || ChunkOf(before) != ChunkOf(step);
}

int64_t ForwardSchedule::ChunkEnd(int64_t step) const {
  const int64_t chunk = ChunkOf(step);
  while (step < rows_.steps && ChunkOf(step) == chunk) ++step;
  return begin_[step];
}

int64_t ForwardSchedule::SliceCount(int threads) const {
  if (regime_ != Regime::kSlices) return 0;
  return CeilDiv(CeilDiv(rows_.batch, kMaxSliceRows), threads) * threads;
}

int64_t ForwardSchedule::Group(const Problem& problem, int threads) const {
  const int64_t lanes = problem.lanes;
  const int64_t share = Max(CeilDiv(units_ / lanes, threads), 1);  // vectors
  if (regime_ == Regime::kOnce) return Min(kOnceVectors, share) * lanes;
  const int64_t rows = Max(rows_.size() / Max(rows_.steps, 1), 1);
  const int64_t work = rows * problem.recurrent_parts * lanes * Max(hidden_, 1);
  const int64_t items = Max(share * work / kItemMultiplyAdds, 1);
  return CeilDiv(share, items) * lanes;
}

}  // namespace tf_lstm_ops::cpu
