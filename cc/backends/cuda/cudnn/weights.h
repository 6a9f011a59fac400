// CudnnWeights: where cuDNN keeps the weights of some layers in its weight
// space, and where params have them. cuDNN is asked; nothing is assumed. So far
// the two layouts are always equal, as cuDNN's documentation says; then nothing
// is copied.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "core/params_layout.h"

namespace tf_lstm_ops::cuda {

// A configured RNN descriptor.
struct CudnnRnn {
  const Cudnn& cudnn;
  cudnnHandle_t handle;
  cudnnRNNDescriptor_t descriptor;
  int element_size;  // in bytes
};

class CudnnWeights {
 public:
  // Of the layers that `rnn` describes: `pseudo_layers` ones from pseudo-layer
  // `first` of the layout's model on. Errors: Internal where cuDNN's matrices
  // have other sizes than the layout's.
  static Status Make(const CudnnRnn& rnn, const ParamsLayout& layout,
                     int64_t first, int64_t pseudo_layers,
                     CudnnWeights* weights);

  int64_t size() const { return size_; }  // of the weight space, in elements
  // Whether params as they are serve as the weight space.
  bool are_params() const { return are_params_; }

  // Copies the weights into the weight space, or from there. Both are in device
  // memory.
  template <class T>
  Status CopyIn(const Device& device, const T* params, T* space) const {
    for (const Run& run : runs_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device.Copy(params + run.params, run.size, space + run.space));
    }
    return Status();
  }
  template <class T>
  Status CopyOut(const Device& device, const T* space, T* params) const {
    for (const Run& run : runs_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device.Copy(space + run.space, run.size, params + run.params));
    }
    return Status();
  }

 private:
  // Elements that are contiguous in both.
  struct Run {
    int64_t params, space, size;
  };

  void Add(int64_t params, int64_t space, int64_t size);
  void JoinRuns();

  std::vector<Run> runs_;
  int64_t size_ = 0;
  bool are_params_ = false;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_
