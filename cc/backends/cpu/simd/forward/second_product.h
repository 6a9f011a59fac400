// The equations of a cell with a second product, ResetBeforeGruCell: what the
// forward pass computes before and after the product.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SECOND_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SECOND_PRODUCT_H_

#include "backends/cpu/simd/forward/products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, class Cell>
struct SecondProductForward {
  using V = VecT<T>;

  // The first half of the equations for a tile: m, and what the second half
  // reads. z includes the biases.
  template <class Tile>
  static void StoreM(const Forward<T>& f, const Tile& tile,
                     const typename Cell::Parameters& with,
                     const V (*z)[Cell::kPreActivations]) {
    const int64_t u = tile.u, width = f.cell_size - u;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const PackedRow e = f.At(tile.packed_row(r));
      const V h = LoadN(f.State(e) + u, width);
      const typename Cell::Outputs y = Cell::Gates(z[r], h, with);
      StoreN(y.r * DropH(f, h, kGateN, e.batch, u), f.M(e) + u, width);
      StoreN(y.u, f.Held(kHeldU, e) + u, width);
      StoreN(z[r][kGateN], f.Held(kHeldN, e) + u, width);
      f.Save(kSavedR, e, u, Cell::SavedGate(z[r][kGateR], y.r, with));
      f.Save(kSavedU, e, u, Cell::SavedGate(z[r][kGateU], y.u, with));
    }
  }

  // n = g(zn + m R) and h of the rows of a step.
  static void FinishStep(const Forward<T>& f, const ForwardRows<T>& rows,
                         const Units& units) {
    for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
      for (int64_t e = rows.begin; e < rows.end; e += kRows) {
        const int64_t count = Min(rows.end - e, kRows);
        const int64_t width = f.cell_size - u;
        const T* m[kRows] = {};
        V z[kRows][1];
        PackedRow at[kRows];
        for (int64_t r = 0; r < count; ++r) {
          at[r] = f.At(e + r);
          m[r] = f.FactorM(at[r], rows);
          z[r][0] = LoadN(f.Held(kHeldN, at[r]) + u, width);
        }
        const ParametersAt<T, Cell> with(f.args, u);
        MultiplyRows<1>(FactorRows<T>{m, count}, f.packed.Second(u), z);
        for (int64_t r = 0; r < count; ++r) {
          T* state = f.State(at[r]) + u;
          typename Cell::Outputs y = {};
          y.u = LoadN(f.Held(kHeldU, at[r]) + u, width);
          Cell::Output(z[r][0], LoadN(state, width), with.get(), &y);
          StoreN(y.h, state, width);
          StoreN(y.h, f.H(at[r]) + u, width);
          StoreEffectiveH(f, y.h, at[r].batch, at[r].ordinal + 1, u);
          f.Save(kSavedN, at[r], u, y.n);
        }
      }
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_SECOND_PRODUCT_H_
