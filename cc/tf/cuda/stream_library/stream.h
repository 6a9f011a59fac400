// What the library for a version of TensorFlow exports.
#ifndef TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_
#define TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_

// The CUstream of the device that a kernel's call runs on, given its
// TF_OpKernelContext; null where the device has none.
extern "C" __attribute__((visibility("default"))) void* tf_lstm_ops_cuda_stream(
    void* op_kernel_context);

#endif  // TF_LSTM_OPS_TF_CUDA_STREAM_LIBRARY_STREAM_H_
