// A layer direction with a projection, by one without.
//
// Let m be the hidden state before the projection, h = m W with W [H, P], and R
// [P, G*H] the recurrent weights. The recurrent product h R is m (W R). W R [H,
// G*H] is computed once for a call; then the steps are those of a layer without
// a projection, and everything else is a product over all steps. A step has
// H*G*H weights in place of P*(G+1)*H.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Errors: those of layer.h. Masked steps of h are zero.
template <class T>
Status ComputeProjectedForward(const Device& device,
                               const LayerForward<T>& layer,
                               Algorithm algorithm);
template <class T>
Status ComputeProjectedBackward(const Device& device,
                                const LayerBackward<T>& layer,
                                Algorithm algorithm);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_
