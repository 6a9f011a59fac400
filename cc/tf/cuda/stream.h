// The stream that TensorFlow computes on. Its C API does not tell it; the C++
// API does, which differs from minor version to minor version. A library of
// one function, compiled for the version at hand, is all that depends on it.
#ifndef TF_LSTM_OPS_TF_CUDA_STREAM_H_
#define TF_LSTM_OPS_TF_CUDA_STREAM_H_

#include "backends/cuda/api/driver.h"
#include "core/status.h"
#include "tf/c_api.h"

namespace tf_lstm_ops::cuda {

// The library is what $TF_LSTM_OPS_CUDA_STREAM_LIBRARY names, or the one for
// this version of TensorFlow beside our own. Errors: FailedPrecondition where
// there is none, or no stream.
Status TfStream(TF_OpKernelContext* context, CUstream* stream);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_TF_CUDA_STREAM_H_
