// Stack: all layers of a call of the CudnnRNN family, in one of several ways.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/runtime/device.h"
#include "core/dropout.h"
#include "core/multi_layer_rnn.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cuda {

// The numbers of cuDNN's algorithms are cuDNN's own. As stock's, they are what
// host_reserved begins with.
enum class Way : int8_t {
  kCudnnStandard = 0,
  kCudnnPersistStatic = 1,
  kCudnnPersistDynamic = 2,
  kCudnnPersistStaticSmallH = 3,
  kOwnKernels = 4,
};
constexpr bool IsCudnns(Way way) { return way != Way::kOwnKernels; }

// What a forward pass leaves for its backward pass begins with the header of
// reserve_space, which is the caller's. A backward pass takes the way of its
// forward pass.
template <class T>
class Stack {
 public:
  // `mask` null: no dropout; its key is what the reserve's header says. Both
  // must outlive the stack.
  static std::unique_ptr<Stack> Make(const MultiLayerRnn& problem,
                                     const DropoutMask* mask, Way way);

  Stack() = default;
  virtual ~Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // To be called before all else. Errors: FailedPrecondition where a library is
  // not there; InvalidArgument for sizes that it cannot count; Unimplemented
  // where there is no such way for this problem.
  virtual Status Begin(const Device& device, bool is_training) = 0;

  virtual int64_t reserve_bytes() const = 0;
  int64_t reserve_size() const {  // in elements of T
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    return (reserve_bytes() + kBytes - 1) / kBytes;
  }

  // `reserve` null in inference.
  virtual Status Forward(const MultiLayerForward<T>& t) = 0;
  virtual Status Backward(const MultiLayerBackward<T>& t) = 0;
};

// Where the parts of a reserve_space stand, each beginning at a multiple of 256
// bytes, as TensorFlow's allocator aligns; in between are zeros.
class ReserveParts {
 public:
  ReserveParts() { Add(sizeof(ReserveHeader)); }

  // Returns where the next part, of so many bytes, begins.
  int64_t Add(int64_t bytes) {
    const int64_t begin = this->bytes();
    ends_.push_back(begin + bytes);
    return begin;
  }
  int64_t bytes() const { return ends_.empty() ? 0 : Aligned(ends_.back()); }

  Status ClearGaps(const Device& device, char* reserve) const {
    for (const int64_t end : ends_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device.Zero(reserve + end, Aligned(end) - end));
    }
    return Status();
  }

 private:
  static int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

  std::vector<int64_t> ends_;
};

// Where a reserve_space keeps the key of its mask.
inline const uint64_t* KeyOf(const char* reserve) {
  return reinterpret_cast<const uint64_t*>(
      reserve + offsetof(ReserveHeader, dropout_key));
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_
