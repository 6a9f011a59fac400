// CudnnWeights: the positions of the weights of some layers in cuDNN's weight
// space and in params (core/params_layout.h). The former come from
// cudnnGetRNNWeightParams. cuDNN's documentation says that both layouts are
// equal. If they are, nothing is copied.
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
  // Sets `weights` for the layers that `rnn` describes: the pseudo-layers
  // [first, first + pseudo_layers) of the layout's model. Errors: Internal
  // where a matrix of cuDNN has another size than in the layout.
  static Status Make(const CudnnRnn& rnn, const ParamsLayout& layout,
                     int64_t first, int64_t pseudo_layers,
                     CudnnWeights* weights);

  int64_t size() const { return size_; }  // of the weight space, in elements
  // Whether the layouts are equal, so that params can be passed as the weight
  // space.
  bool are_params() const { return are_params_; }

  // Copies the weights into the weight space, or from there. Both are in device
  // memory and must not overlap. Errors: those of Device.
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
  // Elements that are contiguous in both layouts.
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
