// The tuner: which algorithm computes a kind of call fastest on this device.
//
// All applicable algorithms are timed on the first call of a given
// configuration. An algorithm is a complete implementation of the call: its
// time includes the copies to the layouts that it needs. The results of each
// algorithm are compared with those of the first. The choice is kept for the
// process and never changes, so a forward pass and its backward pass use the
// same algorithm.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_AUTOTUNE_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_AUTOTUNE_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/api/cublas.h"
#include "backends/cuda/runtime/device.h"
#include "core/params_layout.h"

namespace tf_lstm_ops::cuda {

// The first four are cuDNN's, with cuDNN's numbers (cudnnRNNAlgo_t). CudnnRNNV2
// and V3 return the number in host_reserved.
enum class Algorithm : int8_t {
  kCudnnStandard = 0,
  kCudnnPersistStatic = 1,
  kCudnnPersistDynamic = 2,
  kCudnnPersistStaticSmallH = 3,
  // The package's own kernels (fused/). Each step is a product and a launch.
  kFusedSteps = 4,
  // All steps are one launch, whose blocks synchronise across the grid.
  kFusedGrid = 5,
  // All steps are one launch, whose blocks synchronise within clusters.
  kFusedClusters = 6,
};
constexpr int kAlgorithmCount = 7;
constexpr bool IsCudnn(Algorithm algorithm) {
  return algorithm < Algorithm::kFusedSteps;
}

// What the speed of a call depends on. Calls with equal configurations share a
// choice. Members that do not affect the speed keep their defaults.
struct CallConfig {
  enum class Kind : uint8_t {
    kLayerForward,   // a layer direction on the package's own kernels
    kLayerBackward,  // likewise
    kSingleLayer,    // a layer direction that cuDNN can compute too
    kMultiLayer,
  };
  Kind kind = Kind::kLayerForward;
  bool is_training = false;  // whether the backward pass is timed too
  CUcontext context = nullptr;
  cudaDataType type = CUDA_R_32F;
  RnnModel model;
  int64_t batch = 0;
  // Numbers of steps with the same log2 (rounded down) share a choice.
  // Otherwise data with many different lengths would be timed again and again.
  int64_t log2_time = 0;
  bool time_major = true;
  bool has_padding = false;
  bool has_dropout = false;

  // Sets log2_time from the number of steps.
  void SetTime(int64_t time);
};
// A total order, for maps.
bool operator<(const CallConfig& a, const CallConfig& b);

// One call, which the tuner computes with each algorithm.
class Trial {
 public:
  Trial() = default;
  virtual ~Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Allocates memory for the results. The tuner calls it once, first. Errors:
  // ResourceExhausted.
  virtual Status Allocate() = 0;
  // Computes the call with an algorithm. May overwrite the call's outputs: the
  // caller computes them again after the trial. Must not add to them. Errors:
  // those of the algorithm; the tuner then excludes it.
  virtual Status Run(Algorithm algorithm) = 0;
  // Whether the results of the last run agree with those of the first one that
  // was checked. Waits for the device.
  virtual Status Check(bool* agrees) = 0;
};

// Sets `chosen` to the fastest of `candidates` and keeps this choice for later
// calls with the same `config`. A candidate that fails, or whose results
// disagree, is not chosen.
//
// If a choice was kept before, sets `chosen` to it without timing. The first
// candidate is the default. It is used, and no choice is kept, in these cases:
// it is the only candidate; timing is not allowed (timing.h); the kept choice
// is not among `candidates`; a CUDA graph is being captured; the trial cannot
// allocate its memory; no candidate works. Thread-safe. May wait for the
// device. Errors: Internal where the device fails.
Status Autotune(const Device& device, const CallConfig& config,
                const std::vector<Algorithm>& candidates, Trial* trial,
                Algorithm* chosen);

// Returns whether there is a choice for `config`, and sets `chosen` to it.
bool FindChoice(const CallConfig& config, Algorithm* chosen);

// A backward pass must know the algorithm of its forward pass without reading
// device memory. Therefore the size of the reserve identifies it. TaggedSize
// returns the smallest n >= `size` with n mod kTagPeriod = kTagStride * a,
// where a is the algorithm's number. Sizes are in elements.
constexpr int64_t kTagStride = 64;
constexpr int64_t kTagPeriod = 8 * kTagStride;
static_assert(kAlgorithmCount * kTagStride <= kTagPeriod);
int64_t TaggedSize(int64_t size, Algorithm algorithm);
// Sets `algorithm` to that of a reserve of this size. Returns false if the size
// belongs to no algorithm.
bool AlgorithmOfSize(int64_t size, Algorithm* algorithm);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_AUTOTUNE_H_
