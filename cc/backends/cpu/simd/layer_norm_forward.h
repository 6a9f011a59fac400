// The forward equations of a layer-normalised cell, for whole rows.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_FORWARD_H_

#include "backends/cpu/simd/forward_products.h"
#include "backends/cpu/simd/layer_norm_terms.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, class Cell>
struct LayerNormForward {
  using V = VecT<T>;
  using Plain = typename Cell::Plain;
  static constexpr int kL = kLanes<T>;

  // The equations of rows whose terms are in z, which they overwrite.
  static void ApplyCellToRows(const Forward<T>& f, const ForwardRows<T>& rows) {
    T* z = rows.z;
    for (int64_t e = rows.begin; e < rows.end; ++e, z += f.z_row()) {
      SaveTerms(f, e, z);
      FinishRow(f, e, z);
      if constexpr (Plain::kHasCellState) FinishState(f, e, z);
    }
  }

  // The terms of x and of h, as the backward pass reads them.
  static void SaveTerms(const Forward<T>& f, int64_t e, const T* z) {
    if (!f.args.saved.data[Cell::kTermsAt]) return;
    T* to = f.Saved(Cell::kTermsAt, e);
    for (int p = 0; p < Cell::kPreActivations; ++p, to += f.cell_size) {
      for (int64_t u = 0; u < f.cell_size; u += kL) {
        StoreN(Load(z + p * f.padded_size + u), to + u, f.cell_size - u);
      }
    }
  }

  // The plain cell's equations. Of an LSTM, stores cs and, in z, o.
  static void FinishRow(const Forward<T>& f, int64_t e, T* z) {
    const RowTerms<T, Cell> terms(f.args, z, f.padded_size);
    T* state = f.State(e);
    for (int64_t u = 0; u < f.cell_size; u += kL) {
      const int64_t width = f.cell_size - u;
      V sums[Plain::kPreActivations];
      terms.PreActivations(u, sums);
      const V before = LoadN(state + u, width);
      if constexpr (Plain::kHasCellState) {
        const typename Plain::Outputs y = Plain::Gates(sums, before, {});
        StoreN(y.cs, state + u, width);
        StoreN(y.o, z + u, width);
      } else {
        const typename Plain::Outputs y = Plain::Forward(sums, before, {});
        StoreN(y.h, state + u, width);
        StoreH(f, y.h, e, u);
      }
    }
  }

  // n = gc * LN(cs) + bc, h = o * tanh(n).
  static void FinishState(const Forward<T>& f, int64_t e, const T* o) {
    const LayerNormOptions& options = f.args.config.options.layer_norm;
    const RnnWeights<const T>& weights = f.args.weights;
    T* state = f.State(e);
    const Moments<T> of =
        MomentsOf<T>({state, 1, f.cell_size, f.cell_size}, options.epsilon);
    for (int64_t u = 0; u < f.cell_size; u += kL) {
      const int64_t width = f.cell_size - u;
      const V cs = LoadN(state + u, width);
      typename Plain::Outputs y = {};
      y.o = LoadN(o + u, width);
      y.cs = LoadN(weights.state_scale + u, width) * of.Normalize(cs) +
             LoadN(weights.state_offset + u, width);
      Plain::Output({}, V{}, {}, &y);
      StoreH(f, y.h, e, u);
      const V carry = options.carries_normalized_state ? y.cs : cs;
      StoreN(carry, state + u, width);
      if (f.args.saved.data[kSavedCarry]) {
        StoreN(carry, f.Saved(kSavedCarry, e) + u, width);
      }
    }
  }

  static void StoreH(const Forward<T>& f, V h, int64_t e, int64_t u) {
    StoreN(h, f.H(e) + u, f.cell_size - u);
    if (f.effective_h_sets() > 0) StoreEffectiveH(f, h, e, u);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_FORWARD_H_
