// CudnnLayers: consecutive layers of a model as one RNN of cuDNN, with its
// descriptor.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/cudnn/weights.h"
#include "core/params_layout.h"

namespace tf_lstm_ops::cuda {

// How cuDNN computes the layers.
struct CudnnOptions {
  cudnnDataType_t type;
  cudnnMathType_t math;
  cudnnRNNAlgo_t algorithm;
  bool is_padded;  // cuDNN reads the lengths
  // Rows of the batch. Only CUDNN_RNN_ALGO_PERSIST_DYNAMIC depends on it: cuDNN
  // compiles this algorithm for a batch size.
  int64_t rows;
};

// Layers [first, first + count).
struct LayerRange {
  int64_t first, count;
};

class CudnnLayers {
 public:
  // Sets `layers` to these layers of the model. They are made once per stream
  // and kept for the process. Errors: Unimplemented where cuDNN does not
  // support them; Internal.
  static Status Find(const Cudnn& cudnn, const Device& device,
                     const RnnModel& model, const CudnnOptions& options,
                     const LayerRange& range,
                     std::shared_ptr<const CudnnLayers>* layers);

  cudnnRNNDescriptor_t descriptor() const { return rnn_.get(); }
  const CudnnWeights& weights() const { return weights_; }
  int64_t input_size() const { return input_size_; }

 private:
  Status Make(const Cudnn& cudnn, cudnnHandle_t handle, const RnnModel& model,
              const CudnnOptions& options, const LayerRange& range);

  int64_t input_size_ = 0;
  DropoutDescriptor dropout_;  // rate 0; cuDNN requires a descriptor
  RnnDescriptor rnn_;
  CudnnWeights weights_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYERS_H_
