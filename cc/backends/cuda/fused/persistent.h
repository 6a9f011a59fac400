// Launches of all steps of a layer direction at once (kernels/persistent.cu):
// how its units are distributed over blocks that run at the same time.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cuda/kernels/persistent_arguments.h"
#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

enum class Pass : uint8_t { kForward, kBackward };

// Sizes are in elements unless they say otherwise. At most one block runs per
// multiprocessor.
struct LaunchConfig {
  Algorithm algorithm = Algorithm::kFusedGrid;  // or kFusedClusters
  int64_t units = 0;                            // of a block
  int64_t blocks = 0;                           // of a group
  int64_t groups = 1;
  int64_t rows = 0;          // of the batch, of a group
  int warps = 0;             // of a block
  int tiles = 0;             // of kTileRows rows of weights, of a block
  int64_t stride = 0;        // of the vectors that the blocks exchange
  int64_t vector_bytes = 0;  // of shared_bytes, for those vectors
  int shared_bytes = 0;      // of a block
};

// The launch configuration of a pass by kFusedGrid or kFusedClusters; where the
// layer does not fit that one, by the other one. None: step by step, for
// kFusedSteps and where the layer fits neither, its recurrent dropout differs
// from gate to gate, or tensor cores cannot multiply T: in double, and in float
// unless TF32 is allowed.
template <class T>
std::optional<LaunchConfig> FindLaunchConfig(const Device& device,
                                             const LayerDirection<T>& layer,
                                             Pass pass, Algorithm algorithm);

// The algorithms of the package's own kernels that differ for these passes of a
// layer, kFusedSteps first. With the environment variable
// TF_LSTM_OPS_CUDA_PERSISTENT one only: kFusedSteps if it is 0, kFusedGrid if
// 1, kFusedClusters if "clusters". Of `layer` only sizes and dropout are used.
template <class T>
std::vector<Algorithm> FusedAlgorithms(const Device& device,
                                       const LayerDirection<T>& layer,
                                       const std::vector<Pass>& passes);

// Allocates and initialises what the blocks share. The caller sets dropout and,
// forward, the first set of vectors. The memory belongs to the call.
template <class T>
Status MakeGroupArguments(const Device& device, const LaunchConfig& config,
                          const LayerDirection<T>& layer,
                          GroupArguments<T>* group);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_
