// The gradients of a layer direction's inputs, weights and biases from those of
// its pre-activations: products and sums over all steps.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_

#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// The results of the steps of a backward pass, by input row. Rows that no valid
// step reads are zero.
template <class T>
struct ZGrads {
  // [rows, G*H], of the pre-activations with input weights.
  const T* z_grad = nullptr;
  // [rows, G*H], of the pre-activations with recurrent weights. Differs from
  // z_grad for a GRU only.
  const T* recurrent_z_grad = nullptr;
  // h before each step, [rows, H]. Null if weights_grad.recurrent is null.
  const T* previous_h = nullptr;
};

// Writes those tensors of layer.weights_grad that are not null, and
// layer.x_grad if it is not null. Errors: those of layer.h.
template <class T>
Status ComputeInputAndWeightGrads(const Device& device,
                                  const LayerBackward<T>& layer,
                                  const ZGrads<T>& grads);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_
