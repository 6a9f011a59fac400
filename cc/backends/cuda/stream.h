// The stream that TensorFlow computes on, which its C API does not tell.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_STREAM_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_STREAM_H_

#include "backends/cuda/api/driver.h"
#include "core/status.h"
#include "tf/c_api.h"

namespace tf_lstm_ops::cuda {

// Errors: FailedPrecondition where no library knows this TensorFlow's C++.
Status StreamOf(TF_OpKernelContext* context, CUstream* stream);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_STREAM_H_
