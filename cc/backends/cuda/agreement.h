// Agreement: of several ways to compute the same numbers, whether they do.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_AGREEMENT_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_AGREEMENT_H_

#include <cstdint>

#include "backends/cuda/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
class Agreement {
 public:
  explicit Agreement(const Device& device) : device_(device) {}

  // `rows` rows of `width` numbers, `stride` apart. What comes first is what
  // others of this size are compared with. Waits for the device.
  Status Compare(const T* found, int64_t rows, int64_t width, int64_t stride,
                 bool* agree) {
    *agree = true;
    T* copy = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows * width, &copy));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Copy(device_, CopyRows<T, T>{rows, width, found, stride, copy, width}));
    if (!expected_) {
      expected_ = copy;
      return Status();
    }
    return Agree(device_, copy, expected_, rows * width, agree);
  }

 private:
  const Device& device_;
  const T* expected_ = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_AGREEMENT_H_
