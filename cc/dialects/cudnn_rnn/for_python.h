// The function of the CudnnRNN dialect that Python calls through ctypes.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_FOR_PYTHON_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_FOR_PYTHON_H_

#include "backends/cpu/for_python.h"

// Says whether TensorFlow was built with CUDA. Before the first call the
// library takes it for a build without CUDA.
TF_LSTM_OPS_EXPORT void tf_lstm_ops_set_cuda_build(bool is_cuda_build);

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_FOR_PYTHON_H_
