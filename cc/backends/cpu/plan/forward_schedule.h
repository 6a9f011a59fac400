// ForwardSchedule: the order of the work of a pass over a sequence; see
// README.md. The result does not depend on it.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_SCHEDULE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_SCHEDULE_H_

#include "backends/cpu/plan/forward_problem.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// A value, so that a caller can keep it. `rows` are those of the pass.
class ForwardSchedule {
 public:
  // What an item is.
  enum class Regime {
    kUnits,   // a group of units in a step, each with all of its gates
    kSlices,  // all steps of a slice of the batch
  };
  // What a phase does.
  enum class Work {
    kPrepare,  // packs the weights, copies the initial states, rounds x
    kSlices,   // all steps of a slice
    kCells,    // a step up to the cell's equations
    kProject,  // the second product of a step, such as the projection
    kRows,     // the equations of a step's rows, of a layer-normalised cell
  };
  struct Phase {
    Work work;
    int64_t step = 0;
  };

  // Rows of a band: their tiles read a vector of units' weights one after the
  // other. The weights come from the L2 cache for all tiles but the first. A
  // slice has at most one band.
  static constexpr int64_t kBandRows = 16 * kRows;

  ForwardSchedule() = default;
  // Chooses the regime and the number of threads, at most `threads`, for which
  // the predicted time is least. With `is_row`, one thread would compute the
  // pass as ForwardWay::kOneRow.
  ForwardSchedule(const ForwardProblem& problem, int threads,
                  bool is_row = false);

  Regime regime() const { return regime_; }
  int threads() const { return threads_; }
  // Predicted nanoseconds of the pass.
  double time() const { return time_; }
  // Whether the first tile of a step prefetches its weights.
  bool prefetches_weights() const { return prefetches_weights_; }
  // Units of an item, a multiple of the lanes: of a step, and of the
  // preparation.
  int64_t group() const { return group_; }
  int64_t packing_group() const { return packing_group_; }

  int64_t Phases(const PackedSequence& rows) const;
  Phase At(int64_t phase) const;
  // The number of items of a phase.
  int64_t Items(const PackedSequence& rows, int64_t phase) const;

  // The largest number of packed rows of a step in a slice.
  int64_t slice_rows() const { return slice_rows_; }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(const PackedSequence& rows, int64_t slice,
                     int64_t step) const;

  // Without slices, x W is computed for a chunk of steps at a time, so that it
  // is still in the cache when it is read. Chunk c holds the steps whose first
  // packed row is in [c, c + 1) * chunk rows.
  int64_t MaxChunkRows(const PackedSequence& rows) const;  // packed rows
  // The offset of a step's first packed row from that of its chunk, c * chunk
  // rows.
  int64_t InChunk(const PackedSequence& rows, int64_t step) const;
  bool BeginsChunk(const PackedSequence& rows, int64_t step) const;
  int64_t ChunkEnd(const PackedSequence& rows, int64_t step) const;  // a row

 private:
  void Choose(const ForwardProblem& problem, int threads, bool is_row);
  int64_t ChunkOf(const PackedSequence& rows, int64_t step) const {
    return rows.Begin(step) / chunk_rows_;
  }

  Regime regime_ = Regime::kUnits;
  int threads_ = 1;
  double time_ = 0;
  bool prefetches_weights_ = false;
  Work second_work_ = Work::kProject;  // of a step with two phases
  int64_t step_phases_ = 1;
  int64_t units_ = 0, hidden_ = 0;
  int64_t slices_ = 0, slice_rows_ = 0, chunk_rows_ = 1;
  int64_t group_ = 1, packing_group_ = 1;
};

// The most that MaxChunkRows() returns for passes on so many threads, and of no
// more rows and steps.
int64_t MostChunkRows(const ForwardProblem& problem, int threads);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_SCHEDULE_H_
