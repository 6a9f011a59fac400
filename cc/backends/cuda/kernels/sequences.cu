// Operations on sequences and states around cuDNN's calls, and dropout between
// layers. Compiled for an element type, TF_LSTM_OPS_TYPE, and the type that
// cuDNN computes in, TF_LSTM_OPS_CUDNN_TYPE; they differ for BFloat16 only.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/sequence_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = TF_LSTM_OPS_CUDNN_TYPE;

// The index of the selected row k. Null `indices` select all rows.
__device__ inline int64_t Select(const int32_t* indices, int64_t k) {
  return indices ? indices[k] : k;
}

template <class From, class To>
__device__ inline void Convert(const ConvertRows<From, To>& a) {
  const int64_t k = Thread() % a.width, index = Thread() / a.width;
  const int64_t row = index % a.rows, outer = index / a.rows;
  if (outer >= a.outer) return;
  const From value =
      a.from.data[outer * a.from.outer_stride +
                  Select(a.from.indices, row) * a.from.row_stride + k];
  a.to.data[outer * a.to.outer_stride +
            Select(a.to.indices, row) * a.to.row_stride + k] =
      Number<To>::Store(Number<From>::Load(value));
}

}  // namespace

TF_LSTM_OPS_KERNEL(to_cudnn, ConvertRows<T, C>) { Convert(a); }
TF_LSTM_OPS_KERNEL(from_cudnn, ConvertRows<C, T>) { Convert(a); }

TF_LSTM_OPS_KERNEL(clear_padding, ClearPadding<C>) {
  const int64_t row = Thread() / a.width;
  if (row >= a.time * a.batch) return;
  const int64_t t = a.time_major ? row / a.batch : row % a.time;
  const int64_t b = a.time_major ? row % a.batch : row / a.time;
  if (t >= a.lengths[b]) a.data[Thread()] = Number<C>::Store(0);
}

TF_LSTM_OPS_KERNEL(drop_outputs, DropOutputs<C>) {
  using Compute = typename Number<C>::Compute;
  const int64_t k = Thread() % a.width, row = Thread() / a.width;
  if (row >= a.time * a.rows) return;
  const int64_t t = a.time_major ? row / a.rows : row % a.time;
  const int64_t b =
      Select(a.indices, a.time_major ? row % a.rows : row / a.time);
  const auto element = static_cast<uint64_t>((t * a.batch + b) * a.width + k);
  DropoutRule rule = a.rule;
  rule.key = *a.key;
  Compute value = 0;
  if (!rule.Drops(a.position + element)) {
    value =
        Number<C>::Load(a.from[Thread()]) * static_cast<Compute>(rule.scale);
  }
  a.to[Thread()] = Number<C>::Store(value);
}

}  // namespace tf_lstm_ops::cuda
