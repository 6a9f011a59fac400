// cuDNN 9, which is opened on first use, and its descriptors.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LIBRARY_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LIBRARY_H_

#include "backends/cuda/api/cudnn.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/libraries.h"
#include "core/status.h"

namespace tf_lstm_ops::cuda {

// cuDNN's functions.
struct Cudnn {
  TF_LSTM_OPS_CUDA_CUDNN(TF_LSTM_OPS_CUDA_MEMBER)
};

// Sets `cudnn` to cuDNN's functions, which the process owns. Errors:
// FailedPrecondition where cuDNN cannot be loaded.
Status Open(const Cudnn** cudnn);
// Errors, with the name of the call and cuDNN's message: Unimplemented where
// cuDNN does not support the arguments; Internal for any other failure.
Status Check(const Cudnn& cudnn, cudnnStatus_t result, const char* call);

#define TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, call, ...) \
  TF_LSTM_OPS_RETURN_IF_ERROR(                              \
      ::tf_lstm_ops::cuda::Check(cudnn, (cudnn).call(__VA_ARGS__), #call))

// Sets `handle` to that of the device's stream, which the process owns. Errors:
// those of Check.
Status CudnnHandle(const Cudnn& cudnn, const Device& device,
                   cudnnHandle_t* handle);

// Owns one of cuDNN's descriptors.
template <class T, cudnnStatus_t (*Cudnn::*kCreate)(T*),
          cudnnStatus_t (*Cudnn::*kDestroy)(T)>
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (descriptor_) (cudnn_->*kDestroy)(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // Creates the descriptor. `cudnn` must outlive this object. Errors: those of
  // Check.
  Status Make(const Cudnn& cudnn) {
    cudnn_ = &cudnn;
    return Check(cudnn, (cudnn.*kCreate)(&descriptor_), "cudnnCreate*");
  }
  T get() const { return descriptor_; }

 private:
  const Cudnn* cudnn_ = nullptr;
  T descriptor_ = nullptr;
};

using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, &Cudnn::cudnnCreateTensorDescriptor,
               &Cudnn::cudnnDestroyTensorDescriptor>;
using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, &Cudnn::cudnnCreateDropoutDescriptor,
               &Cudnn::cudnnDestroyDropoutDescriptor>;
using RnnDescriptor =
    Descriptor<cudnnRNNDescriptor_t, &Cudnn::cudnnCreateRNNDescriptor,
               &Cudnn::cudnnDestroyRNNDescriptor>;
using RnnDataDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, &Cudnn::cudnnCreateRNNDataDescriptor,
               &Cudnn::cudnnDestroyRNNDataDescriptor>;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LIBRARY_H_
