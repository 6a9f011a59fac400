// BackwardSchedule: the order of the work of a backward pass; see README.md.
// Steps, chunks and slices depend on the shape of the problem only, neither on
// the number of threads nor on the caches, since they determine the order of
// sums.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_SCHEDULE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_SCHEDULE_H_

#include "backends/cpu/plan/backward_problem.h"

namespace tf_lstm_ops::cpu {

// A value, so that a plan can keep it.
class BackwardSchedule {
 public:
  // What a phase does. In steps of one phase, kHiddenGrad also does kCells.
  enum class Work {
    kPrepare,     // packs the weights
    kSlices,      // all steps and products of a slice
    kHiddenGrad,  // dh of a step, from dz of the step after it
    kCells,       // the cell's equations
    kGather,      // copies x, h and m of a chunk to panels
    kProducts,    // the products of a chunk
    kFinish,      // writes the sums over all steps
  };
  struct Phase {
    Work work;
    int64_t chunk = 0;
    int64_t step = 0;
  };
  struct Steps {
    int64_t begin, end;
  };

  BackwardSchedule() = default;
  // Chooses the number of threads, at most `threads`, for which the predicted
  // time is least.
  BackwardSchedule(const BackwardProblem& problem, int threads);

  int threads() const { return choice_.threads; }
  // Predicted nanoseconds of the pass.
  double time() const { return choice_.time; }
  // Units of an item of a step: a group of columns of a product, or
  // without a product the units of a thread.
  int64_t group() const { return group_; }

  int64_t slices() const { return slices_; }  // 0: without slices
  int64_t chunks() const { return chunks_; }
  // The largest number of rows of the batch in a step, and in a chunk.
  int64_t step_rows() const { return slice_rows_; }
  int64_t chunk_rows() const { return slice_rows_ * chunk_steps_; }

  // Without slices, a cell that reduces rows computes bands of rows. The number
  // of bands does not depend on the number of threads either.
  int64_t bands() const { return Min(batch_, kMaxSlices); }
  int64_t band_rows() const { return CeilDiv(batch_, Max(bands(), 1)); }

  // The first row of the batch that belongs to a slice.
  int64_t FirstBatchRow(int64_t slice) const {
    return Min(slice * slice_rows_, batch_);
  }

  // The steps of a chunk. Chunk 0 has the last steps.
  Steps StepsOf(int64_t chunk) const {
    const int64_t end = steps_ - chunk * chunk_steps_;
    return {Max(end - chunk_steps_, 0), end};
  }

  int64_t FinishPhase() const {
    return slices_ > 0 ? 2 : chunks_ * ChunkPhases() + 1;
  }

  int64_t Phases() const { return FinishPhase() + 1; }

  // All chunks have the same number of phases. In the last chunk some have no
  // step; their `step` is less than the first one of the chunk.
  Phase At(int64_t phase) const {
    if (phase == 0) return {Work::kPrepare};
    if (phase == FinishPhase()) return {Work::kFinish};
    if (slices_ > 0) return {Work::kSlices};
    const int64_t chunk = (phase - 1) / ChunkPhases();
    const int64_t k = (phase - 1) % ChunkPhases();
    if (k == ChunkPhases() - 2) return {Work::kGather, chunk};
    if (k == ChunkPhases() - 1) return {Work::kProducts, chunk};
    return {k % step_phases_ == 0 ? Work::kHiddenGrad : Work::kCells, chunk,
            StepsOf(chunk).end - 1 - k / step_phases_};
  }

 private:
  // The constants were compared with others by `python3 benchmarks/engine` and
  // the cases that are named here; benchmarks/NOTES.md, "Engine: one step in
  // one file", has the figures. Where others were equal within 5 %, the reason
  // is the choice.

  // Slices of a batch. Each has its own sums of the gradients of the weights,
  // so more slices take more memory; 16 occupy 16 threads.
  static constexpr int64_t kMaxSlices = 16;
  // Bytes of the weights, up to which slices are faster than units. An L2 cache
  // of 512 KiB then holds the sums too: lstm,256,60,7,32 to
  // lstm,32,50,128,128.
  static constexpr int64_t kSliceWeightBytes = 256 << 10;
  // Bytes of dz of a chunk, which its products read from a core's cache with
  // slices, and from the shared cache without: lstm,256,60,7,32 and
  // lstm,64,25,256,256.
  static constexpr int64_t kSliceChunkBytes = 128 << 10;
  static constexpr int64_t kChunkBytes = 1 << 20;
  // Rows. A chunk with fewer reads and writes the gradients of the weights too
  // often. Where so many rows have more than kChunkBytes, dz comes from the
  // shared cache, and a chunk has twice as many.
  static constexpr int64_t kMinChunkRows = 256;

  struct Choice {
    int threads = 1;
    double time = 0;
  };
  Choice Choose(const BackwardProblem& problem, int threads) const;
  double UnitsTime(const BackwardProblem& problem, int threads) const;
  double SliceTime(const BackwardProblem& problem) const;
  int64_t Group(const BackwardProblem& problem, int threads) const;

  static int64_t SliceCount(int64_t batch, int64_t weight_bytes) {
    if (weight_bytes > kSliceWeightBytes) return 0;
    int64_t slices = kMaxSlices;
    while (slices > 1 && batch < slices * kMinSliceRows) slices /= 2;
    return slices > 1 ? slices : 0;
  }

  int64_t ChunkSteps(int64_t row_bytes) const {
    int64_t rows = (slices_ > 0 ? kSliceChunkBytes : kChunkBytes) / row_bytes;
    if (slices_ == 0 && rows < kMinChunkRows) rows = 2 * kMinChunkRows;
    return Max(Min(rows / Max(slice_rows_, 1), steps_), 1);
  }

  int64_t ChunkPhases() const { return chunk_steps_ * step_phases_ + 2; }

  // Members are initialised in this order, from those above them.
  int64_t batch_ = 0, steps_ = 0, step_phases_ = 1, slices_ = 0,
          slice_rows_ = 0, chunk_steps_ = 1, chunks_ = 1;
  Choice choice_;
  int64_t group_ = 1;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_SCHEDULE_H_
