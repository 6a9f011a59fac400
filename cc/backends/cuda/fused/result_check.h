// ResultCheck: whether alternative algorithms give the same results.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_

#include <cstdint>

#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
class ResultCheck {
 public:
  // `device` must outlive this object.
  explicit ResultCheck(const Device& device) : device_(device) {}

  // Allocates memory for the reference, `size` elements.
  Status Allocate(int64_t size) {
    size_ = size;
    return device_.Allocate(size, &reference_);
  }

  // Compares `rows` rows of `width` elements, `stride` apart; rows * width is
  // the size. The first call copies them as the reference, and they agree.
  // Waits for the device. Errors: those of CompareElements.
  Status Compare(const T* found, int64_t rows, int64_t width, int64_t stride,
                 bool* agree) {
    *agree = true;
    T* copy = reference_;
    if (has_reference_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size_, &copy));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Copy(device_, CopyRows<T, T>{rows, width, found, stride, copy, width}));
    if (has_reference_) {
      return CompareElements(device_, copy, reference_, size_, agree);
    }
    has_reference_ = true;
    return Status();
  }

 private:
  const Device& device_;
  int64_t size_ = 0;
  T* reference_ = nullptr;
  bool has_reference_ = false;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_RESULT_CHECK_H_
