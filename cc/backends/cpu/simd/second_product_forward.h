// The forward equations of a cell with a second product, ResetBeforeGruCell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_SECOND_PRODUCT_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_SECOND_PRODUCT_FORWARD_H_

#include "backends/cpu/simd/forward_products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, class Cell>
struct SecondProductForward {
  using V = VecT<T>;

  // The first part of the equations for a tile: m, and what the second part
  // reads. z includes the biases.
  template <class Tile>
  static void StoreM(const Forward<T>& f, const Tile& tile,
                     const V (*z)[Cell::kPreActivations]) {
    const int64_t u = tile.u, width = f.cell_size - u;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t e = tile.packed_row(r);
      const V h = LoadN(f.State(e) + u, width);
      const typename Cell::Outputs y = Cell::Gates(z[r], h, {});
      StoreN(y.r * DropH(f, h, kGateN, f.batch_row[e], u), f.M(e) + u, width);
      StoreN(y.u, f.Held(kHeldU, e) + u, width);
      StoreN(z[r][kGateN], f.Held(kHeldN, e) + u, width);
      Save(f, kSavedR, e, u, y.r);
      Save(f, kSavedU, e, u, y.u);
    }
  }

  // n = tanh(zn + m R) and h of the rows of a step.
  static void FinishStep(const Forward<T>& f, const ForwardRows<T>& rows,
                         const Units& units) {
    for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
      for (int64_t e = rows.begin; e < rows.end; e += kRows) {
        FinishTile(f, e, Min(rows.end - e, kRows), u);
      }
    }
  }

 private:
  // Packed rows [e, e + rows), at most kRows.
  static void FinishTile(const Forward<T>& f, int64_t e, int64_t rows,
                         int64_t u) {
    const int64_t width = f.cell_size - u;
    const T* m[kRows] = {};
    V z[kRows][1];
    for (int64_t r = 0; r < rows; ++r) {
      m[r] = f.M(e + r);
      z[r][0] = LoadN(f.Held(kHeldN, e + r) + u, width);
    }
    MultiplyRows<1>(FactorRows<T>{m, rows}, f.SecondWeights(u), z);
    for (int64_t r = 0; r < rows; ++r) {
      T* state = f.State(e + r) + u;
      typename Cell::Outputs y = {};
      y.u = LoadN(f.Held(kHeldU, e + r) + u, width);
      Cell::Output(z[r][0], LoadN(state, width), &y);
      StoreN(y.h, state, width);
      StoreN(y.h, f.H(e + r) + u, width);
      StoreEffectiveH(f, y.h, e + r, u);
      Save(f, kSavedN, e + r, u, y.n);
    }
  }

  static void Save(const Forward<T>& f, int k, int64_t e, int64_t u, V v) {
    if (f.args.saved.data[k]) StoreN(v, f.Saved(k, e) + u, f.cell_size - u);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_SECOND_PRODUCT_FORWARD_H_
