// Which of cuDNN's algorithms is the fastest: those that there are for a shape
// are timed when it is first seen. cuDNN's persistent algorithms can be several
// times faster than its standard one, and slower too.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_ALGORITHMS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_ALGORITHMS_H_

#include "backends/cuda/api/cudnn.h"
#include "backends/cuda/device.h"
#include "dialects/cudnn_rnn/dropout.h"
#include "dialects/cudnn_rnn/model.h"
#include "dialects/cudnn_rnn/tensors.h"

namespace tf_lstm_ops::cuda {

// For a call with these inputs, whose other members are not used. Waits for the
// device where it has to time. The standard algorithm without timing where
// TensorFlow is told to be deterministic or not to try
// (TF_CUDNN_USE_AUTOTUNE=0) and while a CUDA graph is captured.
template <class T>
Status ChooseAlgorithm(const Device& device, const cudnn_rnn::Problem& problem,
                       const cudnn_rnn::DropoutMask* mask, bool is_training,
                       const cudnn_rnn::ForwardTensors<T>& inputs,
                       cudnnRNNAlgo_t* algorithm);

// What was chosen for calls of this kind in training, else the standard one.
template <class T>
cudnnRNNAlgo_t ChosenAlgorithm(const Device& device,
                               const cudnn_rnn::Problem& problem,
                               const cudnn_rnn::DropoutMask* mask);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_ALGORITHMS_H_
