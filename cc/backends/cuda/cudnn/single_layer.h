// CudnnKeras: a layer of Keras' through cuDNN, where cuDNN has what it asks
// for; or as CudnnRNN would on our own kernels, where these are faster.
//
// cuDNN's fast algorithms take sequences that are time-major and without
// padding: x and the outputs are transposed, and turned round where the layer
// goes backwards. Weights are put together as cuDNN's params.
//
// What forward keeps for backward: Stack's reserve, then, where the output
// has the last step only, h of all steps, [T,B,H].
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/cudnn/sequences.h"
#include "backends/cuda/multi_layer/multi_layer.h"
#include "core/layer_direction.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// Not for bfloat16, which cuDNN would compute in float: rnn.h multiplies it as
// it is.
template <class T>
class CudnnKeras {
 public:
  // Whether cuDNN is there and has such a layer: without mask, dropout,
  // peephole and clip. Where a size is zero, there is nothing to do for it.
  static bool Serves(const LayerDirection<T>& layer);

  // Both must outlive this object.
  CudnnKeras(const Device& device, const LayerDirection<T>& layer)
      : device_(device), layer_(layer) {}

  // Puts the inputs together and finds a way: the fastest, or in a
  // backward pass that of the forward pass. Errors: those of Stack::Begin.
  Status BeginForward(bool training, bool return_sequences);
  Status BeginBackward(bool return_sequences);

  int64_t reserve_size() const;  // in elements

  // `output`, [B,T,H] or [B,1,H] of the last step, and the final states of
  // `args` are written. `reserve` null: nothing is kept.
  Status Forward(const LayerForward<T>& args, T* output, T* reserve);
  // The gradients of `args` are written; of what is given it has those of the
  // final states.
  Status Backward(const LayerBackward<T>& args, const T* output,
                  const T* output_grad, const T* reserve);

 private:
  Status MakeProblem();
  Status PutTogether(bool return_sequences);
  Status PackParams();
  Status UnpackParams(const T* params, const RnnWeights<T>& to) const;
  template <class Tensors>
  void SetInputs(Tensors* t) const;
  Status Outputs(const T* output, const T* reserve, const T** steps) const;
  Status OutputGradients(const T* output_grad, const T** steps) const;

  // A sequence by step and row of the batch: cuDNN's, and the layer's, whose
  // inputs may go backwards.
  template <class E>
  BatchRows<E> TimeMajor(E* data, int64_t width) const;
  template <class E>
  BatchRows<E> OfLayer(E* data, int64_t width, bool is_input) const;
  Status Transpose(const BatchRows<const T>& from, const BatchRows<T>& to,
                   int64_t width) const;

  int64_t StepSize() const {  // of h
    return problem_.batch * problem_.model.cell_size;
  }
  int64_t StepsSize() const { return problem_.time * StepSize(); }

  const Device& device_;
  const LayerDirection<T>& layer_;
  bool return_sequences_ = true;
  MultiLayerRnn problem_;
  T* x_ = nullptr;  // [T,B,I], as processed
  T* params_ = nullptr;
  std::unique_ptr<Stack<T>> stack_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SINGLE_LAYER_H_
