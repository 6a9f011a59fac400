// The parameter of the kernel in host_bytes.cu, for it and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_

#include <cstdint>

namespace tf_lstm_ops::cuda {

// The parameters of a kernel may have 4,096 bytes in all.
struct HostBytes {
  static constexpr int kMaxSize = 4000;

  uint8_t* to = nullptr;
  int64_t size = 0;
  uint8_t bytes[kMaxSize] = {};
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_
