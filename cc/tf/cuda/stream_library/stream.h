// The function that the library for one version of TensorFlow exports.
#ifndef TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_
#define TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_

// Returns the CUstream of the device that a kernel's call runs on, or null
// where the device has none. `op_kernel_context` is the call's
// TF_OpKernelContext.
extern "C" __attribute__((visibility("default"))) void* tf_lstm_ops_cuda_stream(
    void* op_kernel_context);

#endif  // TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_
