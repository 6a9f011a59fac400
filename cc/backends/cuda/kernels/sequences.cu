// What is done to sequences and states around cuDNN's calls, and between
// layers. Compiled for a type of tensors, TF_LSTM_OPS_TYPE, and the one that
// layers are computed with, TF_LSTM_OPS_CUDNN_TYPE, which may be another for
// BFloat16 only.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/sequence_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = TF_LSTM_OPS_CUDNN_TYPE;

__device__ inline int64_t Nth(const int32_t* numbers, int64_t k) {
  return numbers ? numbers[k] : k;
}

template <class From, class To>
__device__ inline void Move(const MoveRows<From, To>& a) {
  const int64_t k = Thread() % a.width, at = Thread() / a.width;
  const int64_t row = at % a.rows, outer = at / a.rows;
  if (outer >= a.outer) return;
  const From value =
      a.from.data[outer * a.from.outer_stride +
                  Nth(a.from.numbers, row) * a.from.row_stride + k];
  a.to.data[outer * a.to.outer_stride +
            Nth(a.to.numbers, row) * a.to.row_stride + k] =
      Number<To>::Store(Number<From>::Load(value));
}

}  // namespace

TF_LSTM_OPS_KERNEL(move_in, MoveRows<T, C>) { Move(a); }
TF_LSTM_OPS_KERNEL(move_out, MoveRows<C, T>) { Move(a); }

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
  const int64_t b = Nth(a.numbers, a.time_major ? row % a.rows : row / a.time);
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
