// The equations of a cell with a second product, ResetBeforeGruCell: what the
// backward pass computes before and after the product.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_SECOND_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_SECOND_PRODUCT_H_

#include "backends/cpu/simd/backward/products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, class Cell>
struct SecondProductBackward {
  using V = VecT<T>;
  using Rows = BackwardRows<T>;

  // The first half of the equations of rows of a step, for a group of units
  // from n on: dzn, dzu and u * dh.
  static void BeginCells(const Backward<T>& f, const Rows& rows, int64_t n) {
    ForEachVector(f, rows, n, [&](const PackedRow& e, int64_t u) {
      const int64_t width = f.cell_size - u;
      T* state_grad = f.StateGrad(e) + u;
      typename Cell::Outputs y = {}, grad = {};
      y.u = f.Saved(kSavedU, e, u);
      y.n = f.Saved(kSavedN, e, u);
      grad.h = LoadN(state_grad, width) +
               (LoadN(f.RunningHGrad(e) + u, width) + f.UpstreamH(e, u));
      const typename Cell::Gradients d =
          Cell::Backward(y, LoadN(f.PreviousH(e) + u, width), grad,
                         ParametersAt<T, Cell>(f.args, u).get());
      StoreN(d.state, state_grad, width);
      Store(f, rows, e.index, kGateN, u, d.z[kGateN]);
      Store(f, rows, e.index, kGateU, u, d.z[kGateU]);
    });
  }

  // The second half, after BeginCells of all units: dm = dzn R^T, dzr, and m
  // for the gradient of R.
  static void RunCells(const Backward<T>& f, const Rows& rows, int64_t n) {
    MultiplyBack(f, rows, n, Min(n + f.group, f.cell_size));
    ForEachVector(f, rows, n, [&](const PackedRow& e, int64_t u) {
      const int64_t width = f.cell_size - u;
      T* state_grad = f.StateGrad(e) + u;
      const auto drop = [&](V h) { return DropH(f, h, kGateN, e.batch, u); };
      const auto r = Cell::RestoreReset(f.Saved(kSavedR, e, u),
                                        ParametersAt<T, Cell>(f.args, u).get());
      const V h = drop(LoadN(f.PreviousH(e) + u, width));
      const V dm = LoadN(f.MGrad(rows, e.index) + u, width);
      StoreN(LoadN(state_grad, width) + drop(r.value * dm), state_grad, width);
      StoreN(r.value * h, f.M(rows, e.index) + u, width);
      Store(f, rows, e.index, kGateR, u, Cell::ResetBackward(r, h, dm));
    });
  }

 private:
  // Calls use(e, u) for rows and vectors of a group of units from n on.
  template <class F>
  static void ForEachVector(const Backward<T>& f, const Rows& rows, int64_t n,
                            const F& use) {
    const int64_t n_end = Min(n + f.group, f.cell_size);
    ForEachCellRows(f, rows, [&](const PackedRow& first, int64_t count) {
      for (int64_t u = n; u < n_end; u += kLanes<T>) {
        for (int64_t r = 0; r < count; ++r) use(f.valid.Behind(first, r), u);
      }
    });
  }

  // Stores dz, and adds it to the sum over the rows.
  static void Store(const Backward<T>& f, const Rows& rows, int64_t e, int part,
                    int64_t u, V z) {
    StoreZGrad(f, rows, e, part, u, z);
    T* sum = f.BiasSums(rows.sums, part) + u;
    TF_LSTM_OPS_SIMD::Store(Load(sum) + z, sum);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_SECOND_PRODUCT_H_
