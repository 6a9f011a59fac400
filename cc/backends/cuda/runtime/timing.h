// Which of several ways is the fastest on the card at hand: found out by trying
// where that is allowed.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_

#include <functional>
#include <map>
#include <mutex>

#include "backends/cuda/runtime/device.h"

namespace tf_lstm_ops::cuda {

// Whether ways may be tried: not with TF_CUDNN_USE_AUTOTUNE=0, not where
// TensorFlow is told to be deterministic, and not while a CUDA graph is
// captured.
bool MayTry();
Status IsCapturing(const Device& device, bool* captures);

// The shorter time of two runs: the first one may have to load what it needs,
// and its memory is given back. Waits for the device.
Status Time(const Device& device, const std::function<Status()>& run,
            float* milliseconds);

// Calls of one kind prefer one way. Lengths count by their power of two: else
// data with many of them would be timed again and again.
int64_t PowerOfTwo(int64_t n);

// The ways that were found for kinds of calls.
template <class Kind, class Way>
class Choices {
 public:
  // Whether there is one, which is then set.
  bool Find(const Kind& kind, Way* way) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = ways_.find(kind);
    if (found == ways_.end()) return false;
    *way = found->second;
    return true;
  }
  void Keep(const Kind& kind, Way way) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ways_[kind] = way;
  }

 private:
  std::mutex mutex_;
  std::map<Kind, Way> ways_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_
