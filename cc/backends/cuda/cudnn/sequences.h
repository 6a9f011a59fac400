// Operations on sequences and states around cuDNN's calls, and dropout between
// layers: kernels/sequences.cu. kernels/sequence_arguments.h defines each. T is
// float, double, Half or BFloat16. Errors of all functions: those of FindKernel
// and of Device.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_

#include <type_traits>

#include "backends/cuda/kernels/sequence_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "core/dropout.h"
#include "core/float16.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// The type that cuDNN computes T in: float for BFloat16, which its RNNs do not
// support.
template <class T>
using CudnnType = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

template <class T>
Status ConvertToCudnn(const Device& device,
                      const ConvertRows<T, CudnnType<T>>& rows);
template <class T>
Status ConvertFromCudnn(const Device& device,
                        const ConvertRows<CudnnType<T>, T>& rows);

// C is float, double or Half; in ComputeDropout also BFloat16.
template <class C>
Status Clear(const Device& device, const ClearPadding<C>& padding);
template <class C>
Status ComputeDropout(const Device& device, const DropOutputs<C>& drop);

// The arguments of ComputeDropout for a layer's output, or its gradient, with
// all rows of the batch. The caller sets `from` and `to`. `key` is in device
// memory.
template <class C>
DropOutputs<C> DropoutOfLayer(const MultiLayerRnn& rnn, const DropoutMask& mask,
                              const uint64_t* key, int64_t layer) {
  DropOutputs<C> drop;
  drop.time = rnn.time;
  drop.rows = drop.batch = rnn.batch;
  drop.width = rnn.model.output_size();
  drop.time_major = rnn.time_major;
  drop.rule = mask.rule();
  drop.key = key;
  drop.position = mask.Position(layer, 0);
  return drop;
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_
