// The choice of an algorithm for a layer direction that cuDNN can compute too
// (cudnn/single_layer.h).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Sets `chosen` to the fastest algorithm for a forward pass, in training for a
// forward and a backward pass; see Autotune. The times of cuDNN's algorithms
// include the copies to its layouts. The package's own kernels read the layer's
// layouts. The default is cuDNN's standard algorithm. T is float, double or
// Half. CudnnSingleLayer must support the layer. May wait for the device.
// Errors: those of Autotune.
template <class T>
Status ChooseLayerAlgorithm(const Device& device,
                            const LayerDirection<T>& layer, bool is_training,
                            Algorithm* chosen);

// Computes the backward pass of a layer whose forward pass ran on one of the
// package's own algorithms. Uses the algorithm that ChooseLayerAlgorithm chose
// in training. If no choice was kept, computes step by step. Errors: those of
// ComputeBackward in fused/layer.h.
template <class T>
Status ComputeBackwardAsChosen(const Device& device,
                               const LayerBackward<T>& layer);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_
