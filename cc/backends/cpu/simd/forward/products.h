// The parts of a forward pass that do not depend on the cell, compiled once for
// all cells: the rows that products read, the projection.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_

#include "backends/cpu/simd/forward/state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Stores a vector as elements u, u + 1, ... of a row of `width` elements that a
// product reads.
template <class T>
TF_LSTM_OPS_INLINE void StoreFactor(const Forward<T>& f, VecT<T> v, T* row,
                                    int64_t u, int64_t width) {
  if constexpr (kDotsPairs && std::is_same_v<T, float>) {
    if (f.rounds()) return StorePairs(v, row, u, width);
  }
  StoreN(v, row + u, width - u);
}

// Stores h after `count` valid steps of a row of the batch for the products.
template <class T>
TF_LSTM_OPS_INLINE void StoreEffectiveH(const Forward<T>& f, VecT<T> h,
                                        int64_t row, int64_t count, int64_t u) {
  for (int p = 0; p < f.effective_h_sets(); ++p) {
    const VecT<T> effective = DropH(f, h, f.shape.first_recurrent + p, row, u);
    StoreFactor(f, effective, f.EffectiveH(row, count, p), u, f.hidden_size);
  }
}

// Rounds h_prev, or m, of rows to rows.quads, unless that is null.
template <class T>
TF_LSTM_OPS_NOINLINE void RoundRows(const Forward<T>& f,
                                    const ForwardRows<T>& rows, bool of_m) {
  if constexpr (Forward<T>::kCanQuads) {
    const int64_t width = of_m ? f.cell_size : f.hidden_size;
    for (int64_t e = rows.begin; rows.quads && e < rows.end; ++e) {
      const PackedRow at = f.At(e);
      RoundToQuads(of_m ? f.M(at) : f.PreviousH(at), width, f.format,
                   f.Quads(e, rows));
    }
  }
}

// The same, unless the thread has done it for another item of the phase.
template <class T>
void RoundRowsOnce(const Forward<T>& f, const ForwardRows<T>& rows,
                   int64_t step, bool of_m, int thread) {
  if (!rows.quads) return;
  int64_t& rounded = f.rounded_rows[thread * f.kLineWords];
  const int64_t number = 2 * step + (of_m ? 1 : 0);
  if (rounded != number) RoundRows(f, rows, of_m);
  rounded = number;
}

// Copies a row of x, multiplied by `keep` unless that is null, and rounded if
// f.rounds().
template <class T>
void CopyX(const Forward<T>& f, const T* x, const T* keep, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    if (f.multiplies_quads())
      return RoundToQuads(x, f.input_size, f.format, to);
  }
  for (int64_t i = 0; i < f.input_size; i += kLanes<T>) {
    VecT<T> v = LoadN(x + i, f.input_size - i);
    if (keep) v = v * LoadN(keep + i, f.input_size - i);
    StoreFactor(f, v, to, i, f.input_size);
  }
}

// Copies one vector of the initial states.
template <class T>
void LoadState(const Forward<T>& f, int64_t u) {
  const int64_t width = f.cell_size - u, hidden = f.hidden_size;
  const T* initial = f.shape.has_cell_state ? f.args.c0.data : f.args.h0.data;
  for (int64_t b = 0; b < f.batch; ++b) {
    const int64_t at = b * f.cell_size + u;
    if (f.shape.has_state)
      StoreN(LoadN(initial + at, width), f.state + at, width);
    if (f.effective_h_sets() > 0 && u < hidden) {
      const VecT<T> h = LoadN(f.args.h0.data + b * hidden + u, hidden - u);
      StoreEffectiveH(f, h, b, 0, u);
    }
  }
}

// Writes x of the rows after dropout to rows.dropped_x.
template <class T>
void ApplyInputDropout(const Forward<T>& f, const ForwardRows<T>& rows) {
  T* to = rows.dropped_x;
  for (int64_t e = rows.begin; e < rows.end; ++e) {
    const PackedRow at = f.At(e);
    for (int p = 0; p < f.shape.input; ++p) {
      const T* keep = f.args.input_dropout.data +
                      (f.GateBlock(p) * f.batch + at.batch) * f.input_size;
      CopyX(f, f.X(at), keep, to);
      to += f.FactorWords(f.input_size);
    }
  }
}

// Clips units u, u + 1, ... of h of a row, and saves what they were.
template <class T>
TF_LSTM_OPS_INLINE void ClipH(const Forward<T>& f, const PackedRow& at,
                              int64_t u) {
  using Math = VecMath<T>;
  const int64_t width = f.hidden_size - u;
  const VecT<T> clip = VecT<T>{} + static_cast<T>(f.args.config.proj_clip);
  const VecT<T> h = LoadN(f.H(at) + u, width);
  T* unclipped = f.args.unclipped_h;
  if (unclipped) StoreN(h, unclipped + at.index * f.hidden_size + u, width);
  StoreN(Math::Min(Math::Max(h, -clip), clip), f.H(at) + u, width);
}

// h = m Wp of the rows, clipped.
template <class T>
void ProjectOutput(const Forward<T>& f, const ForwardRows<T>& rows,
                   const Units& units) {
  const int64_t hidden = f.hidden_size;
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    MultiplyBand<1>([&](int64_t e) { return f.FactorM(f.At(e), rows); },
                    f.packed.Second(u), {rows.begin, rows.end, hidden - u},
                    [&](int64_t e) { return f.H(f.At(e)) + u; });
    const bool clips = f.args.config.clips_h();
    const bool copies = f.effective_h_sets() > 0;
    for (int64_t e = rows.begin; (clips || copies) && e < rows.end; ++e) {
      const PackedRow at = f.At(e);
      if (clips) ClipH(f, at, u);
      StoreEffectiveH(f, LoadN(f.H(at) + u, hidden - u), at.batch,
                      at.ordinal + 1, u);
    }
  }
}

// The second product of a step, and what follows it.
template <class T>
void FinishFromM(const Forward<T>& f, const ForwardRows<T>& rows,
                 const Units& units) {
  if (f.projected()) return ProjectOutput(f, rows, units);
  f.functions.finish_step(f, rows, units);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_
