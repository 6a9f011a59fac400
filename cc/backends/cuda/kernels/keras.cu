// What Keras' layers do around the steps. Compiled for a type of tensors,
// TF_LSTM_OPS_TYPE: Half, BFloat16, float or double.
#include "backends/cuda/kernels/keras_arguments.h"
#include "backends/cuda/kernels/kernel.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

}  // namespace

// A thread for each row of the batch and unit.
TF_LSTM_OPS_KERNEL(step_gradients, StepGradients<T>) {
  const int64_t b = Thread() / a.cell, u = Thread() % a.cell;
  if (b >= a.steps.batch) return;
  const int64_t last = a.steps.steps - 1;
  C sum = 0;
  for (int64_t s = last; s >= 0; --s) {
    const Steps::Rows rows = a.steps.At(b, s);
    if (!a.last_only) {
      sum += Number<T>::Load(a.output_grad[rows.output * a.cell + u]);
    } else if (s == last) {
      sum = Number<T>::Load(a.output_grad[b * a.cell + u]);
    }
    a.h_grad[rows.output * a.cell + u] =
        Number<T>::Store(rows.valid ? sum : C(0));
    if (rows.valid || a.masked_is_zero) sum = 0;
  }
}

}  // namespace tf_lstm_ops::cuda
