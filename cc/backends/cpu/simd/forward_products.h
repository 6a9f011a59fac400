// The parts of a forward pass that do not depend on the cell, compiled once for
// all cells: biases, the rows that products read, a single step, the
// projection.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_

#include "backends/cpu/simd/forward_state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The bias of a pre-activation, and the forget bias. A layer-normalised cell
// adds its biases later.
template <class T>
TF_LSTM_OPS_INLINE VecT<T> BiasOf(const Forward<T>& f, int part, int64_t u) {
  if (f.shape.reduces_rows) return VecT<T>{};
  const int64_t at = f.GateBlock(part) * f.cell_size + u;
  const auto load = [&](const T* bias, bool has_part) {
    return bias && has_part ? LoadN(bias + at, f.cell_size - u) : VecT<T>{};
  };
  VecT<T> bias =
      load(f.args.weights.input_bias, part < f.shape.input) +
      load(f.args.weights.recurrent_bias, part >= f.shape.first_recurrent);
  if (f.shape.has_forget_bias && part == kGateF) {
    bias = bias + static_cast<T>(f.args.config.forget_bias);
  }
  return bias;
}

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

// Parts [first, first + parts) of W or R, which have `depth` inputs.
struct GateParts {
  int first, parts;
  int64_t depth;
};

// Packs parts of W or R for some units; see Forward::InputWeights.
template <class T>
void PackGates(const Forward<T>& f, const GateMatrices<const T>& from,
               const GateParts& of, const Units& units, T* packed) {
  const int64_t row = of.parts * kLanes<T>;
  const int64_t vector = Words(of.depth, f.format) * row;
  packed += units.begin / kLanes<T> * vector;
  for (int p = of.first; p < of.first + of.parts; ++p, packed += kLanes<T>) {
    from.Read(f.GateBlock(p), [&](const auto* data) {
      PackVectors(PackedFrom{data + units.begin * from.column_stride,
                             from.row_stride, from.column_stride, of.depth,
                             Min(f.cell_size, units.end) - units.begin},
                  PackedTo<T>{packed, row, vector}, f.format);
    });
  }
}

// Packs the weights of some units; the first one is a multiple of kLanes.
template <class T>
void PackWeights(const Forward<T>& f, const Units& units) {
  const RnnWeights<const T>& w = f.args.weights;
  if (w.input) {
    PackGates(f, w.input, {0, f.shape.input, f.input_size}, units,
              f.packed_input);
  }
  PackGates(f, w.recurrent,
            {f.shape.first_recurrent, f.shape.recurrent, f.hidden_size}, units,
            f.packed_recurrent);
  const int64_t u = units.begin, columns = Min(f.hidden_size, units.end) - u;
  if (!f.multiplies_m() || columns <= 0) return;
  const GateMatrices<const T>& from =
      f.projected() ? w.projection : w.recurrent;
  from.Read(f.projected() ? 0 : f.GateBlock(kGateN), [&](const auto* data) {
    PackVectors(PackedFrom{data + u * from.column_stride, from.row_stride,
                           from.column_stride, f.cell_size, columns},
                PackedTo<T>{f.packed_second + u * f.cell_size, kLanes<T>,
                            kLanes<T> * f.cell_size},
                WeightFormat::kElements);
  });
}

// Copies a row of x, multiplied by `keep` unless that is null, and rounded if
// f.rounds().
template <class T>
void CopyX(const Forward<T>& f, const T* x, const T* keep, T* to) {
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

// z = x W + h R + bias of the only step, with weights that are not packed.
template <class T>
void MultiplySingleStep(const Forward<T>& f, const Units& units, int thread) {
  const auto z_of = [&](int64_t e, int p, int64_t u) {
    return f.z + e * f.z_row() + p * f.padded_size + u;
  };
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    LoadState(f, u);
    for (int p = 0; p < f.shape.input; ++p) {
      const VecT<T> bias = BiasOf(f, p, u);
      for (int64_t e = 0; e < f.packed_rows; ++e) Store(bias, z_of(e, p, u));
    }
  }
  f.single_step.Add(units.begin, units.end, thread, z_of);
}

// h = m Wp of the rows.
template <class T>
void ProjectOutput(const Forward<T>& f, const ForwardRows<T>& rows,
                   const Units& units) {
  const int64_t hidden = f.hidden_size;
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    MultiplyBand<1>([&](int64_t e) { return f.M(f.At(e)); }, f.SecondWeights(u),
                    {rows.begin, rows.end, hidden - u},
                    [&](int64_t e) { return f.H(f.At(e)) + u; });
    for (int64_t e = rows.begin; f.effective_h_sets() > 0 && e < rows.end;
         ++e) {
      const PackedRow at = f.At(e);
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
