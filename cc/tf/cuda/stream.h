// CudaStream: the CUDA stream of a kernel's call.
//
// TensorFlow's C API does not expose the stream. The C++ API does, but its ABI
// changes between minor versions. A separate library with one function
// therefore reads the stream; it is compiled for the installed version of
// TensorFlow (stream_library/).
#ifndef TF_LSTM_OPS_TF_CUDA_STREAM_H_
#define TF_LSTM_OPS_TF_CUDA_STREAM_H_

#include "core/status.h"
#include "tf/tensorflow_api.h"

namespace tf_lstm_ops::tf {

// Sets `stream` to the CUstream of the call's device, which TensorFlow owns.
// The environment variable TF_LSTM_OPS_CUDA_STREAM_LIBRARY names the library.
// Errors: FailedPrecondition where the library cannot be loaded, or the device
// has no CUDA stream.
Status CudaStream(TF_OpKernelContext* context, void** stream);

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_CUDA_STREAM_H_
