// CudnnSingleLayer: one batch-major layer direction, as Keras has it, by cuDNN.
//
// cuDNN's fast algorithms need time-major sequences without padding. Therefore
// x and the outputs are transposed. They are also reversed if the layer runs
// backwards in time. The weights are copied into cuDNN's parameter buffer.
//
// The reserve is that of CudnnMultiLayer, then h of all steps, [T, B, H], if
// the output is the last step only, then zeros up to a size that identifies the
// algorithm (TaggedSize).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/cudnn/multi_layer.h"
#include "backends/cuda/cudnn/sequences.h"
#include "core/layer_direction.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// T is float, double or Half. bfloat16 is left out, because cuDNN would compute
// it in float. All tensors lie in device memory and belong to the caller.
template <class T>
class CudnnSingleLayer {
 public:
  // Whether cuDNN can be loaded and supports the layer: an LSTM or a GRU
  // without mask, dropout multipliers, peepholes, clip, and sizes of zero.
  static bool Supports(const LayerDirection<T>& layer);

  // `device` and `layer` must outlive this object.
  CudnnSingleLayer(const Device& device, const LayerDirection<T>& layer,
                   bool return_sequences, Algorithm algorithm)
      : device_(device),
        layer_(layer),
        return_sequences_(return_sequences),
        algorithm_(algorithm) {}

  // Must be called before the functions below. Errors: those of
  // MultiLayerAlgorithm::Begin.
  Status Begin(bool is_training);

  // In elements.
  int64_t reserve_size() const {
    return TaggedSize(h_offset() + h_size(), algorithm_);
  }

  // Writes `output`, [B, T, H], or [B, 1, H] of the last step, and the final
  // states of `layer`. Nothing is saved if `reserve` is null. Errors: those of
  // MultiLayerAlgorithm::Begin.
  Status ComputeForward(const LayerForward<T>& layer, T* output, T* reserve);

  // The output of the forward pass and the gradient with respect to it.
  struct Outputs {
    const T *output, *output_grad;
  };
  // Reads the gradients of the final states from `layer` and writes all
  // gradients of `layer`. Does not change the reserve. Errors: likewise.
  Status ComputeBackward(const LayerBackward<T>& layer, const Outputs& outputs,
                         const T* reserve);

 private:
  Status SetRnn();
  // Copies x and the weights to cuDNN's layouts.
  template <class Tensors>
  Status SetInputs(Tensors* t) const;
  Status PackParams(T* params) const;
  Status UnpackParams(const T* params, const RnnWeights<T>& to) const;
  // h of all steps and its gradient, time-major.
  Status SetH(const T* output, const T* reserve, const T** h) const;
  Status SetHGrad(const T* output_grad, const T** h_grad) const;

  // Views of a sequence as [T, B, width]: of one in cuDNN's layout, and of one
  // in the layer's.
  template <class E>
  BatchRows<E> TimeMajor(E* data, int64_t width) const {
    return {data, rnn_.batch * width, width};
  }
  template <class E>
  BatchRows<E> BatchMajor(E* data, int64_t width) const {
    return {data, width, rnn_.time * width};
  }
  // A view of x in the order in which the steps read it.
  template <class E>
  BatchRows<E> InputRows(E* data, int64_t width) const;
  Status Transpose(const BatchRows<const T>& from, const BatchRows<T>& to,
                   int64_t width) const;

  int64_t state_size() const { return rnn_.batch * rnn_.model.cell_size; }
  int64_t sequence_size() const { return rnn_.time * state_size(); }
  // Of h in the reserve.
  int64_t h_offset() const { return multi_layer_->reserve_size(); }
  int64_t h_size() const { return return_sequences_ ? 0 : sequence_size(); }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const bool return_sequences_;
  const Algorithm algorithm_;
  MultiLayerRnn rnn_;
  std::unique_ptr<CudnnMultiLayer<T>> multi_layer_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_
