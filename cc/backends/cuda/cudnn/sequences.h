// What is done to sequences and states around cuDNN's calls:
// kernels/sequences.cu.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_

#include <type_traits>

#include "backends/cuda/kernels/sequence_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "core/dropout.h"
#include "core/float16.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// cuDNN's layers know no bfloat16. In float nothing is lost.
template <class T>
using CudnnType = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

template <class T>
Status MoveIn(const Device& device, const MoveRows<T, CudnnType<T>>& rows);
template <class T>
Status MoveOut(const Device& device, const MoveRows<CudnnType<T>, T>& rows);

// C is a CudnnType, of Drop also BFloat16.
template <class C>
Status Clear(const Device& device, const ClearPadding<C>& padding);
template <class C>
Status Drop(const Device& device, const DropOutputs<C>& drop);

// What `Drop` is given for a layer's outputs, or gradients by them, of all rows
// of the batch; where they go is left to be said. The mask's key is that in the
// device's memory.
template <class C>
DropOutputs<C> OutputsToDrop(const MultiLayerRnn& problem,
                             const DropoutMask& mask, const uint64_t* key,
                             int64_t layer, const C* from) {
  DropOutputs<C> drop;
  drop.time = problem.time;
  drop.rows = drop.batch = problem.batch;
  drop.width = problem.model.output_size();
  drop.time_major = problem.time_major;
  drop.rule = mask.rule();
  drop.key = key;
  drop.position = mask.Position(layer, 0);
  drop.from = from;
  return drop;
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_SEQUENCES_H_
