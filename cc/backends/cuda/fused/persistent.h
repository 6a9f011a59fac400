// All steps of a layer in one launch (kernels/persistent.cu): how a layer's
// units are shared among the blocks, which are there at the same time.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cuda/kernels/persistent_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// How the steps are launched: each by itself; all together, with all blocks of
// the launch waiting for each other; or with those of a cluster doing so, whose
// wait is shorter, for layers that are small enough (compute capability 9.0).
enum class Launches : uint8_t { kSteps, kTogether, kClusters };

// What all blocks together do in a step: for each unit some rows of weights,
// each of `depth` numbers.
struct StepWork {
  int64_t units = 0;
  int64_t rows_of_unit = 0;
  int64_t depth = 0;
  int64_t steps = 0;
  int64_t batch = 0;
};

struct Spread {
  Launches launches = Launches::kTogether;
  int64_t units = 0;   // of a block
  int64_t blocks = 0;  // that share the layer
  int64_t groups = 1;  // of such, each with some rows of the batch:
  int64_t rows = 0;
  int warps = 0;             // of a block
  int tiles = 0;             // of kTileRows rows of weights, of a block
  int64_t stride = 0;        // of the rows that weights are multiplied with
  int64_t vector_bytes = 0;  // of shared_bytes, for these rows
  int shared_bytes = 0;      // of a block
};

// The ways in which all steps can be one launch: where the weights, of numbers
// of `bytes`, fit the card's shared memory. A multiprocessor has a block at
// most.
std::vector<Spread> FindSpreads(const Device& device, const StepWork& work,
                                int bytes);

// Whether the kernels exist for a type and the card's tensor cores know it;
// float only where it may be multiplied as TF32.
template <class T>
bool CanPersist(const Device& device);

// The memory by which blocks talk to each other.
template <class T>
Status MakePersistence(const Device& device, const Spread& spread,
                       int64_t batch, const GateMatrices<const T>& weights,
                       Persistence<T>* shared);

// Calls `run(spread)`, at last the way that is the fastest one for a call of
// this kind; null: step by step, as where nothing may be tried (see timing.h).
// One launch must also work, and have the numbers that the steps have:
// `result()`, after a run. TF_LSTM_OPS_CUDA_PERSISTENT=1 takes the first of the
// spreads untried, TF_LSTM_OPS_CUDA_PERSISTENT=clusters the last.
struct PersistenceKind {
  int64_t result_size = 0;  // of `result()`, in numbers
  int64_t type_size = 0, batch = 0, steps = 0, cell_size = 0;
  CellKind cell = CellKind::kLstm;
  bool is_backward = false;
};
template <class T>
struct RunResult {
  const T* data;
  int64_t rows, width, stride;
};
template <class T>
Status RunFastest(const Device& device, const PersistenceKind& kind,
                  const std::vector<Spread>& spreads,
                  const std::function<Status(const Spread*)>& run,
                  const std::function<RunResult<T>()>& result);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_
