// CudnnLayers: some layers of a model as one of cuDNN's.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/cudnn/weights.h"
#include "core/params_layout.h"

namespace tf_lstm_ops::cuda {

// How cuDNN is to compute.
struct CudnnOptions {
  cudnnDataType_t type;
  cudnnMathType_t math;
  cudnnRNNAlgo_t algorithm;
  bool is_padded;  // reads lengths
  int64_t rows;    // of a batch; layers for one serve another, but for those of
                   // an algorithm that is compiled
};

class CudnnLayers {
 public:
  // `count` layers from the `first` of the model on. They are made once for a
  // stream and kept, like cuDNN's handle. Errors: Unimplemented where cuDNN has
  // no such.
  static Status Find(const Cudnn& cudnn, const Device& device,
                     const RnnModel& model, const CudnnOptions& options,
                     int64_t first, int64_t count,
                     std::shared_ptr<const CudnnLayers>* layers);

  cudnnRNNDescriptor_t descriptor() const { return rnn_.get(); }
  const CudnnWeights& weights() const { return weights_; }
  int64_t input_size() const { return input_size_; }

 private:
  Status Make(const Cudnn& cudnn, cudnnHandle_t handle, const RnnModel& model,
              const CudnnOptions& options, int64_t first, int64_t count);

  int64_t input_size_ = 0;
  DropoutDescriptor dropout_;  // none; cuDNN wants to hear of it
  RnnDescriptor rnn_;
  CudnnWeights weights_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_
