// The parameter of the kernel in host_bytes.cu, for it and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_

#include <cstdint>

namespace tf_lstm_ops::cuda {

// Bytes of the host that the kernel writes to device memory. CUDA limits the
// parameters of a kernel to 4,096 bytes in total.
struct HostBytes {
  static constexpr int kMaxSize = 4000;

  uint8_t* to = nullptr;  // [size], device memory
  int64_t size = 0;       // at most kMaxSize
  uint8_t bytes[kMaxSize] = {};
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_HOST_BYTES_H_
