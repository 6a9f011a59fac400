// The backward pass of a layer direction without a projection.
//
// Backwards in time, each step is one kernel for the cell and one product with
// the recurrent weights; or all steps are one launch (persistent.h). The
// gradients of the inputs and weights follow as products and sums over all
// steps (weight_grads.h).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_BACKWARD_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_BACKWARD_PASS_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// `algorithm` is one of the package's own. layer.z_grad, [rows, G*H], may be
// set for any cell, not only for an LSTM. Errors: those of layer.h.
template <class T>
Status ComputeCellBackward(const Device& device, const LayerBackward<T>& layer,
                           Algorithm algorithm);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_BACKWARD_PASS_H_
