// A layer whose output is projected, by one whose output is not.
//
// With h = r W, r the cell's own output, the recurrent product h R is r (W R).
// W R is found once for a call: then the steps are those of a layer without
// projection, and all that is projected is a product over all steps. A step is
// as few launches, or waits, as without; it has H*4H weights in place of P*5H.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_

#include "backends/cuda/fused/layer.h"
#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {

// The forward pass of a layer without a projection.
template <class T>
struct CellForward : LayerForward<T> {
  // Added to the pre-activations of step 0, [B, G*H]; null counts as zeros.
  const ComputeType<T>* initial_product = nullptr;
};
template <class T>
Status ComputeCellForward(const Device& device, const CellForward<T>& layer);

template <class T>
Status ForwardProjected(const Device& device, const LayerForward<T>& args);
template <class T>
Status BackwardProjected(const Device& device, const LayerBackward<T>& args);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PROJECTION_H_
