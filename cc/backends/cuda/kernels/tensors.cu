// Operations on whole tensors around the steps. Compiled for an element type,
// TF_LSTM_OPS_TYPE: Half, BFloat16, float or double.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/tensor_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

template <class To>
__device__ inline void Store(C value, bool adds, To* to) {
  if (adds) value += Number<To>::Load(*to);
  *to = Number<To>::Store(value);
}

template <class From, class To>
__device__ inline void Copy(const CopyRows<From, To>& a) {
  const int64_t row = Thread() / a.width, k = Thread() % a.width;
  if (row >= a.rows) return;
  const C value =
      a.from ? Number<From>::Load(a.from[row * a.from_stride + k]) : C(0);
  Store(value, a.adds, a.to + row * a.to_stride + k);
}

template <class From, class To>
__device__ inline void Drop(const DropRows<From, To, T>& a) {
  const int64_t row = Thread() / a.width, k = Thread() % a.width;
  if (row >= a.rows) return;
  int64_t b = row;
  C value = 0;
  if (a.from && (a.by_batch || a.sequence.Reads(row, &b))) {
    value = Number<From>::Load(a.from[row * a.from_stride + k]);
    const Multipliers<T>& m = a.dropout;
    if (m.data) value *= Number<T>::Load(m.data[m.Index(0, b, k)]);
  }
  Store(value, a.adds, a.to + Thread());
}

template <class From, class To>
__device__ inline void Sum(const SumRows<From, To>& a) {
  const int64_t chunk = Thread() / a.columns, column = Thread() % a.columns;
  const int64_t begin = chunk * a.chunk;
  if (begin >= a.rows && chunk > 0) return;
  const int64_t end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  C sum = 0;
  for (int64_t row = begin; row < end; ++row) {
    sum += Number<From>::Load(a.from[row * a.stride + column]);
  }
  Store(sum, false, a.to + Thread());
}

}  // namespace

TF_LSTM_OPS_KERNEL(copy_rows, CopyRows<T, T>) { Copy(a); }
TF_LSTM_OPS_KERNEL(widen_rows, CopyRows<T, C>) { Copy(a); }
TF_LSTM_OPS_KERNEL(narrow_rows, CopyRows<C, T>) { Copy(a); }

TF_LSTM_OPS_KERNEL(drop_rows, DropRows<T, T, T>) { Drop(a); }
TF_LSTM_OPS_KERNEL(drop_wide_rows, DropRows<C, C, T>) { Drop(a); }

TF_LSTM_OPS_KERNEL(added_input_grad, AddedInputGrad<T>) {
  const int64_t blocks = a.gate_stride > 0 ? a.gates : 1;
  const int64_t width = blocks * a.cell_size;
  const int64_t row = Thread() / width, column = Thread() % width;
  if (row >= a.rows) return;
  const T* z_grad = a.z_grad + row * a.gates * a.cell_size + column;
  C sum = 0;
  for (int64_t g = 0; g < a.gates / blocks; ++g) {
    sum += Number<T>::Load(z_grad[g * a.cell_size]);
  }
  const int64_t block = column / a.cell_size, u = column % a.cell_size;
  Store(sum, a.adds,
        a.x_grad + row * a.x_grad_stride + block * a.gate_stride + u);
}

TF_LSTM_OPS_KERNEL(step_grads, StepGrads<T>) {
  const int64_t b = Thread() / a.cell_size, u = Thread() % a.cell_size;
  if (b >= a.sequence.batch) return;
  const int64_t last = a.sequence.steps - 1;
  C sum = 0;
  for (int64_t s = last; s >= 0; --s) {
    const Sequence::Step step = a.sequence.At(b, s);
    if (!a.last_only) {
      sum += Number<T>::Load(a.output_grad[step.output * a.cell_size + u]);
    } else if (s == last) {
      sum = Number<T>::Load(a.output_grad[b * a.cell_size + u]);
    }
    a.h_grad[step.output * a.cell_size + u] =
        Number<T>::Store(step.valid ? sum : C(0));
    if (step.valid || a.masked_is_zero) sum = 0;
  }
}

TF_LSTM_OPS_KERNEL(sum_rows, SumRows<T, C>) { Sum(a); }
TF_LSTM_OPS_KERNEL(sum_partial, SumRows<C, T>) { Sum(a); }

}  // namespace tf_lstm_ops::cuda
