#include "backends/cuda/cudnn/library.h"

namespace tf_lstm_ops::cuda {

#define TF_LSTM_OPS_CUDNN_SYMBOL(function) \
  {#function, reinterpret_cast<void**>(&cudnn.function)},

Status Open(const Cudnn** cudnn_or_null) {
  static Cudnn cudnn;
  static const Status status =
      Open({"cuDNN 9",
            {"libcudnn.so.9"},
            "cudnn",
            "pip install nvidia-cudnn-cu12, which tensorflow[and-cuda] brings"},
           {TF_LSTM_OPS_CUDA_CUDNN(TF_LSTM_OPS_CUDNN_SYMBOL)});
  *cudnn_or_null = &cudnn;
  return status;
}

Status Check(const Cudnn& cudnn, cudnnStatus_t result, const char* call) {
  if (result == CUDNN_STATUS_SUCCESS) return Status();
  char details[512] = {};
  cudnn.cudnnGetLastErrorString(details, sizeof details);
  // A status of 3xxx is a kind of NOT_SUPPORTED.
  const bool is_unsupported = result >= CUDNN_STATUS_NOT_SUPPORTED &&
                              result < CUDNN_STATUS_INTERNAL_ERROR;
  return MakeStatus(
      is_unsupported ? Code::kUnimplemented : Code::kInternal,
      "tf_lstm_ops: ", call, " of cuDNN ", cudnn.cudnnGetVersion(),
      " failed: ", cudnn.cudnnGetErrorString(result), " ", details);
}

Status CudnnHandle(const Cudnn& cudnn, const Device& device,
                   cudnnHandle_t* handle) {
  cudnnContext*& kept = device.handles().cudnn;
  if (!kept) {
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnCreate, &kept);
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnSetStream, kept,
                                      device.stream());
  }
  *handle = kept;
  return Status();
}

}  // namespace tf_lstm_ops::cuda
