// Which way is the fastest for a call of the CudnnRNN family: those that there
// are for a shape are timed when it is first seen, and compared: one whose
// numbers are not those of the first is not taken. cuDNN's persistent
// algorithms, and our own kernels, can be several times faster than its
// standard algorithm, and slower too.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOICE_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOICE_H_

#include "backends/cuda/multi_layer/multi_layer.h"

namespace tf_lstm_ops::cuda {

// For a call with these inputs, whose other members are not used. Waits for the
// device where it has to time. Nothing is timed where TensorFlow is told to be
// deterministic or not to try (TF_CUDNN_USE_AUTOTUNE=0) and while a CUDA graph
// is captured: then cuDNN's standard algorithm is taken, or our own kernels
// where cuDNN is not there or, by TF_LSTM_OPS_CUDA_CUDNN=0, not wanted.
template <class T>
Status ChooseWay(const Device& device, const MultiLayerRnn& problem,
                 const DropoutMask* mask, bool is_training,
                 const MultiLayerForward<T>& inputs, Way* way);

// What was chosen for calls of this kind in training, else what is taken
// without timing.
template <class T>
Way ChosenWay(const Device& device, const MultiLayerRnn& problem,
              const DropoutMask* mask);

// Whether cuDNN may be asked at all.
bool HasCudnn();

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_CHOICE_H_
