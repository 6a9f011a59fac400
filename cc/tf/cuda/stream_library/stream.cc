// Compiled against the headers of the installed TensorFlow by
// tf_lstm_ops/_cuda_stream.py, or beforehand for a release. A
// TF_OpKernelContext of the C API is an OpKernelContext.
#include "stream.h"

#include "tensorflow/core/framework/op_kernel.h"
#include "xla/stream_executor/stream.h"

void* tf_lstm_ops_cuda_stream(void* op_kernel_context) {
  auto* context = static_cast<tensorflow::OpKernelContext*>(op_kernel_context);
  tensorflow::DeviceContext* device = context->op_device_context();
  if (device == nullptr || device->stream() == nullptr) return nullptr;
  return device->stream()->platform_specific_handle().stream;
}
