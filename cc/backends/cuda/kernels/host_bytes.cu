// Writes bytes that are kernel parameters. One thread writes one byte.
#include "backends/cuda/kernels/host_bytes.h"
#include "backends/cuda/kernels/kernel.h"

namespace tf_lstm_ops::cuda {

TF_LSTM_OPS_KERNEL(put_bytes, HostBytes) {
  if (Thread() < a.size) a.to[Thread()] = a.bytes[Thread()];
}

}  // namespace tf_lstm_ops::cuda
