// The steps of a cell, forward and backward, one launch for each; and sums over
// the steps.
#include "backends/cuda/kernels/cell_step.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class Cell>
__device__ inline void SumPeepholes(const PeepholeSums<T, C>& a) {
  if constexpr (Cell::kHasPeephole) CellStep<Cell>::SumPeepholes(a);
}

}  // namespace

TF_LSTM_OPS_KERNEL(forward_step, ForwardStep<T, C>) {
  using Step = CellStep<Cell>;
  const Element element = ThisElement(a.sequence, a.cell.cell_size);
  if (!element.exists) return;
  const int64_t cell_size = a.cell.cell_size;
  const C* product =
      a.recurrent_product + element.b * a.cell.gates * cell_size + element.u;
  C h;
  const bool valid = Step::ComputeForward(
      a, a.step, element, Step::LoadForward(a, a.step, element),
      [&](int block) { return product[block * cell_size]; }, &h);
  if (valid) Step::StoreDroppedH(a, element, h);
}

TF_LSTM_OPS_KERNEL(backward_step, BackwardStep<T, C>) {
  using Step = CellStep<Cell>;
  const Element element = ThisElement(a.sequence, a.cell.cell_size);
  if (!element.exists) return;
  T* z_grad = a.step_z_grad + element.b * a.cell.gates * a.cell.cell_size;
  Step::ComputeBackward(
      a, element, Step::LoadBackward(a, a.step, element), 0,
      [&](int64_t column, T value) { z_grad[column] = value; });
}

TF_LSTM_OPS_KERNEL(previous_h, PreviousH<T, C>) {
  CellStep<Cell>::FindPreviousH(a);
}

TF_LSTM_OPS_KERNEL(peephole_sums, PeepholeSums<T, C>) { SumPeepholes<Cell>(a); }

}  // namespace tf_lstm_ops::cuda
