// The steps of a cell, forward and backward, each a launch; and sums over them.
// A thread has a unit of a row of the batch.
#include "backends/cuda/kernels/cell_passes.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class Cell>
__device__ inline void SumPeepholes(const PeepholeSums<T, C>& a) {
  if constexpr (Cell::kHasPeephole) Passes<Cell>::SumPeepholes(a);
}

}  // namespace

TF_LSTM_OPS_KERNEL(forward_step, ForwardStep<T, C>) {
  const Place at = ThisPlace(a.sequence, a.cell.cell);
  if (!at.exists) return;
  const int64_t cell = a.cell.cell;
  const C* from_h = a.from_h + at.b * a.cell.gates * cell + at.u;
  C h;
  const bool valid = Passes<Cell>::Forward(
      a, a.step, at, Passes<Cell>::LoadInput(a, a.step, at),
      [&](int block) { return from_h[block * cell]; }, &h);
  if (valid) Passes<Cell>::StoreSeen(a, at, h);
}
TF_LSTM_OPS_KERNEL(backward_step, BackwardStep<T, C>) {
  const Place at = ThisPlace(a.sequence, a.cell.cell);
  if (!at.exists) return;
  T* dz = a.dz_step + at.b * a.cell.gates * a.cell.cell;
  Passes<Cell>::Backward(a, at, Passes<Cell>::LoadKept(a, a.step, at), 0,
                         [&](int64_t column, T value) { dz[column] = value; });
}
TF_LSTM_OPS_KERNEL(h_before, HBefore<T, C>) { Passes<Cell>::FindHBefore(a); }
TF_LSTM_OPS_KERNEL(peephole_sums, PeepholeSums<T, C>) { SumPeepholes<Cell>(a); }

}  // namespace tf_lstm_ops::cuda
