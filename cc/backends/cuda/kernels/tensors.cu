// What is done to whole tensors around the steps. Compiled for a type of
// tensors, TF_LSTM_OPS_TYPE: Half, BFloat16, float or double. A thread has a
// number of the result.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/rnn_arguments.h"

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

// Dropout's multiplier of a set, or 1.
__device__ inline C Keep(const Multipliers<T>& m, int64_t set, int64_t b,
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

// The larger one; NaN if one is.
__device__ inline C Larger(C a, C b) { return a > b || a != a ? a : b; }

}  // namespace

TF_LSTM_OPS_KERNEL(copy_rows, CopyRows<T, T>) { Copy(a); }
TF_LSTM_OPS_KERNEL(widen_rows, CopyRows<T, C>) { Copy(a); }
TF_LSTM_OPS_KERNEL(narrow_rows, CopyRows<C, T>) { Copy(a); }

TF_LSTM_OPS_KERNEL(seen_rows, SeenRows<T>) {
  const int64_t k = Thread() % a.width, at = Thread() / a.width;
  const int64_t set = at / a.rows, row = at % a.rows;
  if (set >= a.sets) return;
  int64_t b = row;
  const bool is_read = a.of_states || a.sequence.Reads(row, &b);
  C seen = 0;
  if (is_read && a.from) {
    seen = Number<T>::Load(a.from[row * a.from_stride + k]) *
           Keep(a.dropout, set, b, k);
  }
  a.to[Thread()] = Number<T>::Store(seen);
}

TF_LSTM_OPS_KERNEL(add_seen, AddSeen<T, C>) {
  const int64_t k = Thread() % a.width, row = Thread() / a.width;
  if (row >= a.rows) return;
  int64_t b = row;
  if (!a.of_states) a.sequence.Reads(row, &b);
  C sum = 0;
  for (int64_t set = 0; set < a.sets; ++set) {
    sum +=
        Keep(a.dropout, set, b, k) * a.from[(set * a.rows + row) * a.width + k];
  }
  a.to[Thread()] += sum;
}

TF_LSTM_OPS_KERNEL(pass_to_input, PassToInput<T, C>) {
  const int64_t blocks = a.gate_stride > 0 ? a.gates : 1;
  const int64_t width = blocks * a.cell;
  const int64_t row = Thread() / width, column = Thread() % width;
  if (row >= a.rows) return;
  const T* dz = a.dz + row * a.gates * a.cell + column;
  C sum = 0;
  for (int64_t g = 0; g < a.gates / blocks; ++g) {
    sum += Number<T>::Load(dz[g * a.cell]);
  }
  const int64_t block = column / a.cell, u = column % a.cell;
  T* dx = a.x_grad + row * a.dx_stride + block * a.gate_stride + u;
  if (a.adds) sum += Number<T>::Load(*dx);
  *dx = Number<T>::Store(sum);
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
  const int64_t b = Thread() / a.cell, u = Thread() % a.cell;
  if (b >= a.sequence.batch) return;
  const int64_t last = a.sequence.steps - 1;
  C sum = 0;
  for (int64_t s = last; s >= 0; --s) {
    const Sequence::Step step = a.sequence.At(b, s);
    if (!a.last_only) {
      sum += Number<T>::Load(a.output_grad[step.output * a.cell + u]);
    } else if (s == last) {
      sum = Number<T>::Load(a.output_grad[b * a.cell + u]);
    }
    a.h_grad[step.output * a.cell + u] =
        Number<T>::Store(step.valid ? sum : C(0));
    if (step.valid || a.masked_is_zero) sum = 0;
  }
}

TF_LSTM_OPS_KERNEL(largest_difference, LargestDifference<T, C>) {
  const int64_t begin = Thread() * a.chunk;
  if (begin >= a.size) return;
  const int64_t end = begin + a.chunk < a.size ? begin + a.chunk : a.size;
  C difference = 0, largest = 0;
  for (int64_t n = begin; n < end; ++n) {
    const C found = Number<T>::Load(a.found[n]);
    const C expected = Number<T>::Load(a.expected[n]);
    if (expected - expected != 0) continue;  // not finite
    const C far = found - expected;
    difference = Larger(far < 0 ? -far : far, difference);
    largest = Larger(expected < 0 ? -expected : expected, largest);
  }
  a.to[2 * Thread()] = difference;
  a.to[2 * Thread() + 1] = largest;
}

TF_LSTM_OPS_KERNEL(sum_rows, SumRows<T, C>) { Sum(a); }
TF_LSTM_OPS_KERNEL(sum_sums, SumRows<C, T>) { Sum(a); }

}  // namespace tf_lstm_ops::cuda
