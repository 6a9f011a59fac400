// ForwardSchedule: the order of the work of a forward pass. The result does not
// depend on it.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FORWARD_SCHEDULE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FORWARD_SCHEDULE_H_

#include "backends/cpu/cost.h"
#include "backends/cpu/sizes.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

class ForwardSchedule {
 public:
  // How the work is divided.
  enum class Regime {
    // One step. The weights are used once, so they are read where they lie.
    kOnce,
    // An item is a group of units, each with all of its gates. Each step is a
    // phase, or two with a second product or a layer-normalised cell. A thread
    // reads only its units' part of R in each step.
    kUnits,
    // An item is a slice of the batch and computes all steps in one phase. No
    // thread waits for another one between steps, and the state of the slice
    // stays in the thread's cache. Each thread reads all weights in each step.
    kSlices,
  };
  // What a phase does.
  enum class Work {
    // Packs the weights, copies the initial states, rounds x. With kOnce and
    // few rows, the products of single chains of the weights; see
    // single_step.h.
    kPrepare,
    kSlices,   // all steps of a slice
    kCells,    // a step up to the cell's equations
    kProject,  // the second product of a step, such as the projection
    kRows,     // the equations of a step's rows, of a layer-normalised cell
  };
  struct Phase {
    Work work;
    int64_t step = 0;
  };
  // Sizes in elements, but `lanes` in elements of a vector.
  struct Problem {
    const PackedSequence& rows;
    bool once;              // whether to use Regime::kOnce
    bool packs_weights;     // this call packs its weights
    bool multiplies_m;      // a step has a second product
    bool reduces_rows;      // not both
    int64_t units, hidden;  // `units` is a multiple of `lanes`
    int64_t input;          // 0 without input weights
    int64_t lanes;
    int64_t input_parts, recurrent_parts;
    int64_t z_bytes;       // of a row of z
    int64_t vector_bytes;  // of `lanes` weights
    int together = 1;      // layer directions that run side by side
    Caches caches = TheCaches();
    Rates rates = {};
    bool one_row = false;  // one thread would compute the pass by one_row.h
  };

  // Rows of a band: their tiles read a vector of units' weights one after the
  // other. The weights come from the L2 cache for all tiles but the first. A
  // slice has at most one band.
  static constexpr int64_t kBandRows = 16 * kRows;

  // Chooses the regime and the number of threads, at most `threads`, for which
  // the predicted time is least.
  ForwardSchedule(const Problem& problem, int threads);

  Regime regime() const { return plan_.regime; }
  int threads() const { return plan_.threads; }
  // Predicted nanoseconds of the pass; with Regime::kOnce, of one thread.
  double time() const { return plan_.time; }
  // Whether the first tile of a step prefetches its weights.
  bool prefetches_weights() const { return prefetches_weights_; }
  // Units of an item, a multiple of `lanes`: of a step, and of the preparation.
  int64_t group() const { return group_; }
  int64_t packing_group() const { return packing_group_; }

  int64_t Phases() const;
  Phase At(int64_t phase) const;
  // The number of items of a phase. Not for phase 0 of Regime::kOnce.
  int64_t Items(int64_t phase) const;

  // The largest number of packed rows of a step in a slice.
  int64_t slice_rows() const { return slice_rows_; }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const;

  // Without slices, x W is computed for a chunk of steps at a time, so that it
  // is still in the cache when it is read. Chunk c holds the steps whose first
  // packed row is in [c, c + 1) * chunk rows.
  int64_t MaxChunkRows() const;  // packed rows
  // The most that MaxChunkRows() returns for so many threads, and no more rows
  // and steps.
  int64_t MostChunkRows(int threads) const;
  // The offset of a step's first packed row from that of its chunk, c * chunk
  // rows.
  int64_t InChunk(int64_t step) const;
  bool BeginsChunk(int64_t step) const;
  int64_t ChunkEnd(int64_t step) const;  // a packed row

 private:
  struct Plan {
    Regime regime;
    int threads;
    double time;
  };
  static bool PrefetchesWeights(const Problem& problem, const Plan& plan);
  static Plan Choose(const Problem& problem, int threads);
  static double UnitsTime(const Problem& problem, int threads);
  static double SlicesTime(const Problem& problem, int threads);

  // Each thread gets several items, but an item has enough work to make
  // scheduling it cheap.
  static int64_t Group(const Problem& problem, Regime regime, int threads);

  int64_t ChunkOf(int64_t step) const {
    return rows_.Begin(step) / chunk_rows_;
  }

  const PackedSequence& rows_;
  const Plan plan_;
  const bool prefetches_weights_;
  const int64_t step_phases_;
  const Work second_work_;  // of a step with two phases
  const int64_t units_, hidden_;
  const int64_t slices_, slice_rows_, chunk_rows_, group_, packing_group_;
  const Caches caches_;
  const int64_t z_bytes_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FORWARD_SCHEDULE_H_
