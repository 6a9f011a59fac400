// Where cuDNN keeps the weights of some layers, beside where the op's params
// have them. cuDNN is asked and nothing is assumed: where both agree, as its
// documentation says, nothing is moved.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "core/params_layout.h"

namespace tf_lstm_ops::cuda {

class CudnnWeights {
 public:
  // Of the layers that `rnn` describes, from pseudo-layer `first` of the
  // layout's model on. Errors: Internal where cuDNN's matrices are not those of
  // the layout.
  static Status Make(const Cudnn& cudnn, cudnnHandle_t handle,
                     cudnnRNNDescriptor_t rnn, const ParamsLayout& layout,
                     int64_t first, int64_t pseudo_layers, int element_size,
                     CudnnWeights* weights);

  int64_t size() const { return size_; }  // of cuDNN's space, in elements
  // Whether the params as they are serve as cuDNN's space.
  bool are_params() const { return are_params_; }

  // Into cuDNN's space, and from there.
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
  // Numbers that follow each other in both.
  struct Run {
    int64_t params, space, size;
  };

  void Add(int64_t params, int64_t space, int64_t size);
  // Runs that follow each other become one.
  void Join();

  std::vector<Run> runs_;
  int64_t size_ = 0;
  bool are_params_ = false;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_WEIGHTS_H_
