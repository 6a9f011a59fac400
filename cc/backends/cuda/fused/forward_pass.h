// The forward pass of a layer direction without a projection.
//
// The products of all inputs with the input weights are computed at once. Then
// each step is one product of h with the recurrent weights and one kernel for
// the cell; or all steps are one launch (persistent.h).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_FORWARD_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_FORWARD_PASS_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/types.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// A layer direction whose first step has one more summand.
template <class T>
struct CellForward : LayerForward<T> {
  // Added to the pre-activations of step 0, [B, G*H]; null counts as zeros.
  const ComputeType<T>* initial_product = nullptr;
};

// `algorithm` is one of the package's own. Errors: those of layer.h.
template <class T>
Status ComputeCellForward(const Device& device, const CellForward<T>& layer,
                          Algorithm algorithm);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_FORWARD_PASS_H_
