// Launch configurations for all steps of a layer direction in one launch
// (kernels/persistent.cu): how its units are distributed over blocks that run
// at the same time.
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

// A group is the set of blocks that synchronise (kernels/block_group.h). At
// most one block runs per multiprocessor.
struct LaunchConfig {
  Algorithm algorithm = Algorithm::kFusedGrid;  // or kFusedClusters
  int64_t units = 0;                            // per block
  int64_t blocks = 0;                           // per group
  int64_t groups = 1;
  int64_t rows = 0;          // rows of the batch per group
  int warps = 0;             // per block
  int tiles = 0;             // per block, each of kTileRows rows of weights
  int64_t stride = 0;        // elements per vector that the blocks exchange
  int64_t vector_bytes = 0;  // the part of shared_bytes for those vectors
  int shared_bytes = 0;      // shared memory per block
};

// The launch configuration of a pass by kFusedGrid or kFusedClusters. If the
// layer does not fit the given form, the configuration is that of the other
// form. Returns nullopt if the pass must run step by step: for kFusedSteps; if
// the layer fits neither form; if its recurrent dropout differs from gate to
// gate; if tensor cores cannot multiply T, which is double, or float unless
// TF32 is allowed.
template <class T>
std::optional<LaunchConfig> FindLaunchConfig(const Device& device,
                                             const LayerDirection<T>& layer,
                                             Pass pass, Algorithm algorithm);

// The algorithms of the package's own kernels that can compute at least one of
// these passes of a layer, kFusedSteps first. The environment variable
// TF_LSTM_OPS_CUDA_PERSISTENT leaves one: kFusedSteps if it is 0, kFusedGrid if
// 1, kFusedClusters if "clusters". Of `layer` only sizes and dropout are used.
template <class T>
std::vector<Algorithm> FusedAlgorithms(const Device& device,
                                       const LayerDirection<T>& layer,
                                       const std::vector<Pass>& passes);

// Allocates and initialises the memory that the blocks share. The caller sets
// the dropout and, in a forward pass, the first set of vectors [B, stride]. The
// memory belongs to the call. Errors: those of Device.
template <class T>
Status MakeGroupArguments(const Device& device, const LaunchConfig& config,
                          const LayerDirection<T>& layer,
                          GroupArguments<T>* group);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PERSISTENT_H_
