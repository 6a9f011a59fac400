// The choice of an algorithm for a layer direction that cuDNN can compute too
// (cudnn/single_layer.h).
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Sets `chosen` to the fastest algorithm for a forward pass, in training for a
// forward and a backward pass; see Autotune. The time that cuDNN's algorithms
// take includes the copies to its layouts; the package's own kernels take the
// layer as it is. The default is cuDNN's standard algorithm. T is float, double
// or Half; CudnnSingleLayer must support the layer. May wait for the device.
template <class T>
Status ChooseLayerAlgorithm(const Device& device,
                            const LayerDirection<T>& layer, bool is_training,
                            Algorithm* chosen);

// The backward pass of a layer for which ChooseLayerAlgorithm took one of the
// package's own algorithms in training: by the same one, or step by step where
// nothing was chosen.
template <class T>
Status ComputeBackwardAsChosen(const Device& device,
                               const LayerBackward<T>& layer);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_LAYER_ALGORITHM_H_
