// The tuner: which algorithm computes a kind of call fastest on this device.
//
// All applicable algorithms are timed on the first call of a given
// configuration. An algorithm is a complete implementation of the call, from
// the tensors as the op has them. Each one's results are checked against those
// of the first. The choice is kept for the process and never changes, so that a
// forward pass and its backward pass find the same one.
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
  // The package's own kernels (fused/): a product and a launch for each step;
  kFusedSteps = 4,
  // all steps in one launch, whose blocks synchronise across the grid;
  kFusedGrid = 5,
  // all steps in one launch, whose blocks synchronise within clusters.
  kFusedClusters = 6,
};
constexpr int kAlgorithmCount = 7;
constexpr bool IsCudnn(Algorithm algorithm) {
  return algorithm < Algorithm::kFusedSteps;
}

// What the speed of a call depends on. Calls of one configuration share a
// choice. Members that do not matter keep their defaults.
struct CallConfig {
  enum class Kind : uint8_t {
    kLayerForward,   // a layer direction on the package's own kernels
    kLayerBackward,  // likewise
    kSingleLayer,    // a layer direction that cuDNN can compute too
    kMultiLayer,
  };
  Kind kind = Kind::kLayerForward;
  bool is_training = false;  // both passes count, else the forward pass alone
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

  void SetTime(int64_t time);
};
bool operator<(const CallConfig& a, const CallConfig& b);

// One call as the tuner repeats it.
class Trial {
 public:
  Trial() = default;
  virtual ~Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Allocates the results. Called once, before all else.
  virtual Status Allocate() = 0;
  // Computes the call. May write to the call's outputs, which are computed
  // again after the trial, but must not add to them.
  virtual Status Run(Algorithm algorithm) = 0;
  // Whether the results of the last run agree with those of the first one that
  // was checked. Waits for the device.
  virtual Status Check(bool* agrees) = 0;
};

// Sets `chosen`, one of `candidates`, or what was chosen for `config` before.
// The first candidate is the default: it is taken, and nothing is kept, where
// timing is not allowed (timing.h), while a CUDA graph is captured, and where
// the trial gets no memory or no candidate works. A candidate that fails, or
// whose results disagree, is not chosen. May wait for the device. Errors:
// Internal where the device fails.
Status Autotune(const Device& device, const CallConfig& config,
                const std::vector<Algorithm>& candidates, Trial* trial,
                Algorithm* chosen);

// Returns whether there is a choice for `config`, and sets `chosen` to it.
bool FindChoice(const CallConfig& config, Algorithm* chosen);

// A backward pass must know the algorithm of its forward pass without reading
// device memory. The size of the reserve tells it: TaggedSize returns the
// smallest size of at least `size` elements that is kTagStride times the
// algorithm's number modulo kTagPeriod. Most other sizes belong to no
// algorithm.
constexpr int64_t kTagStride = 64;
constexpr int64_t kTagPeriod = 8 * kTagStride;
static_assert(kAlgorithmCount * kTagStride <= kTagPeriod);
int64_t TaggedSize(int64_t size, Algorithm algorithm);
// The algorithm of a reserve of this size. Returns false where there is none.
bool AlgorithmOfSize(int64_t size, Algorithm* algorithm);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_AUTOTUNE_H_
