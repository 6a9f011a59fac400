// A layer direction with a projection, computed as one without a projection.
//
// Let m be the hidden state before the projection, h = m W with W [H, P], and R
// [P, G*H] the recurrent weights. The recurrent product h R equals m (W R). W R
// [H, G*H] is computed once per call. The steps are those of a layer without a
// projection whose recurrent weights are W R. All other values are products
// over all steps. A step reads H*G*H weights instead of P*(G+1)*H.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// In the padding, h is zero. Errors: those of layer.h.
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
