// The choice of an algorithm for a multi-layer RNN.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_ALGORITHM_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_ALGORITHM_H_

#include "backends/cuda/multi_layer/multi_layer.h"
#include "backends/cuda/runtime/autotune.h"

namespace tf_lstm_ops::cuda {

// Sets `chosen` to the fastest algorithm for a forward pass, in training for a
// forward and a backward pass; see Autotune. The default is cuDNN's standard
// algorithm; without cuDNN, or with TF_LSTM_OPS_CUDA_CUDNN=0, the package's own
// kernels step by step, if they support the RNN. Reads the input, the states
// and params of `inputs`. May wait for the device. Errors: those of Autotune
// and of MultiLayerAlgorithm::Begin.
template <class T>
Status ChooseAlgorithm(const Device& device, const MultiLayerRnn& rnn,
                       const DropoutMask* mask, bool is_training,
                       const MultiLayerForward<T>& inputs, Algorithm* chosen);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOOSE_ALGORITHM_H_
