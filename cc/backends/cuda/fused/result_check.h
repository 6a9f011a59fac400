// Agreement: of several ways to compute the same numbers, whether they do.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_

#include <cstdint>

#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
class Agreement {
 public:
  explicit Agreement(const Device& device) : device_(device) {}

  // Of so many numbers. What is compared may be given back, this not.
  Status Allocate(int64_t size) {
    size_ = size;
    return device_.Allocate(size, &expected_);
  }

  // `rows` rows of `width` numbers, `stride` apart. What comes first is what
  // others are compared with. Waits for the device.
  Status Compare(const T* found, int64_t rows, int64_t width, int64_t stride,
                 bool* agree) {
    *agree = true;
    T* copy = expected_;
    if (has_expected_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size_, &copy));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Copy(device_, CopyRows<T, T>{rows, width, found, stride, copy, width}));
    if (has_expected_) return Agree(device_, copy, expected_, size_, agree);
    has_expected_ = true;
    return Status();
  }

 private:
  const Device& device_;
  int64_t size_ = 0;
  T* expected_ = nullptr;
  bool has_expected_ = false;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_
