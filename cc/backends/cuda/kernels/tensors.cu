// Operations on whole tensors around the steps. Compiled for an element type,
// TF_LSTM_OPS_TYPE: Half, BFloat16, float or double.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/tensor_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

template <class From, class To>
__device__ inline void Copy(const CopyRows<From, To>& a) {
  const int64_t row = Thread() / a.width, k = Thread() % a.width;
  if (row >= a.rows) return;
  To* to = a.to + row * a.to_stride + k;
  C value = a.from ? Number<From>::Load(a.from[row * a.from_stride + k]) : C(0);
  if (a.adds) value += Number<To>::Load(*to);
  *to = Number<To>::Store(value);
}

// The dropout multiplier of an element, or 1.
__device__ inline C Multiplier(const Multipliers<T>& m, int64_t set, int64_t b,
                               int64_t k) {
  return m.data ? Number<T>::Load(m.data[m.Index(set, b, k)]) : C(1);
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
  a.to[Thread()] = Number<To>::Store(sum);
}

// The maximum, or NaN if a or b is NaN.
__device__ inline C Larger(C a, C b) { return a > b || a != a ? a : b; }

}  // namespace

TF_LSTM_OPS_KERNEL(copy_rows, CopyRows<T, T>) { Copy(a); }
TF_LSTM_OPS_KERNEL(widen_rows, CopyRows<T, C>) { Copy(a); }
TF_LSTM_OPS_KERNEL(narrow_rows, CopyRows<C, T>) { Copy(a); }

TF_LSTM_OPS_KERNEL(drop_rows, DropRows<T>) {
  const int64_t k = Thread() % a.width, at = Thread() / a.width;
  const int64_t set = at / a.rows, row = at % a.rows;
  if (set >= a.sets) return;
  int64_t b = row;
  const bool is_read = a.by_batch || a.sequence.Reads(row, &b);
  C value = 0;
  if (is_read && a.from) {
    value = Number<T>::Load(a.from[row * a.from_stride + k]) *
            Multiplier(a.dropout, set, b, k);
  }
  a.to[Thread()] = Number<T>::Store(value);
}

TF_LSTM_OPS_KERNEL(drop_rows_grad, DropRowsGrad<T, C>) {
  const int64_t k = Thread() % a.width, row = Thread() / a.width;
  if (row >= a.rows) return;
  int64_t b = row;
  if (!a.by_batch) a.sequence.Reads(row, &b);
  C sum = 0;
  for (int64_t set = 0; set < a.sets; ++set) {
    sum += Multiplier(a.dropout, set, b, k) *
           a.from[(set * a.rows + row) * a.width + k];
  }
  a.to[Thread()] += sum;
}

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
  T* x_grad = a.x_grad + row * a.x_grad_stride + block * a.gate_stride + u;
  if (a.adds) sum += Number<T>::Load(*x_grad);
  *x_grad = Number<T>::Store(sum);
}

TF_LSTM_OPS_KERNEL(first_rows, EndRows<T>) {
  const int64_t k = Thread() % a.width, b = Thread() / a.width;
  if (b >= a.sequence.batch) return;
  const int64_t row = a.sequence.At(b, 0).input;
  a.to[b * a.to_stride + k] = a.from[row * a.from_stride + k];
}
TF_LSTM_OPS_KERNEL(add_to_last_rows, EndRows<T>) {
  const int64_t k = Thread() % a.width, b = Thread() / a.width;
  if (b >= a.sequence.batch) return;
  const int64_t row = a.sequence.At(b, a.sequence.Length(b) - 1).output;
  T* to = a.to + row * a.to_stride + k;
  *to = Number<T>::Store(Number<T>::Load(*to) +
                         Number<T>::Load(a.from[b * a.from_stride + k]));
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

TF_LSTM_OPS_KERNEL(max_difference, MaxDifference<T, C>) {
  const int64_t begin = Thread() * a.chunk;
  if (begin >= a.size) return;
  const int64_t end = begin + a.chunk < a.size ? begin + a.chunk : a.size;
  C difference = 0, largest = 0;
  for (int64_t n = begin; n < end; ++n) {
    const C found = Number<T>::Load(a.found[n]);
    const C expected = Number<T>::Load(a.expected[n]);
    if (expected - expected != 0) continue;  // not finite
    const C error = found - expected;
    difference = Larger(error < 0 ? -error : error, difference);
    largest = Larger(expected < 0 ? -expected : expected, largest);
  }
  a.to[2 * Thread()] = difference;
  a.to[2 * Thread() + 1] = largest;
}

TF_LSTM_OPS_KERNEL(sum_rows, SumRows<T, C>) { Sum(a); }
TF_LSTM_OPS_KERNEL(sum_partial, SumRows<C, T>) { Sum(a); }

}  // namespace tf_lstm_ops::cuda
