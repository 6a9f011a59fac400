// The gradients of a layer direction's inputs, weights and biases from those of
// its pre-activations: products and sums over all steps.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_

#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// What the steps of a backward pass leave, by input row; zero in rows that no
// valid step reads.
template <class T>
struct ZGrads {
  const T* z_grad = nullptr;            // [rows, G*H]
  const T* recurrent_z_grad = nullptr;  // [rows, G*H]; only a GRU's differ
  // h before each step, [rows, H]. Null unless the gradient of the recurrent
  // weights is wanted.
  const T* previous_h = nullptr;
};

// Writes the wanted ones of layer.weights_grad and layer.x_grad.
template <class T>
Status ComputeInputAndWeightGrads(const Device& device,
                                  const LayerBackward<T>& layer,
                                  const ZGrads<T>& grads);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_WEIGHT_GRADS_H_
