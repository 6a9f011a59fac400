// The forward equations of a layer-normalised cell, for whole rows, and what
// the backward pass shares with them: the normalised parts of a row, their mean
// and variance.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_LAYER_NORM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_LAYER_NORM_H_

#include "backends/cpu/simd/forward/products.h"
#include "core/layer_norm_cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Adds the upper half of the lanes to the lower one until one lane is left.
template <class T>
TF_LSTM_OPS_INLINE T SumOfLanes(VecT<T> v) {
  T lanes[kLanes<T>];
  Store(v, lanes);
  for (int half = kLanes<T> / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

// `parts` parts of `width` elements each, `stride` elements apart.
template <class T>
struct RowParts {
  const T* data;
  int parts;
  int64_t width, stride;

  int64_t size() const { return parts * width; }
  VecT<T> Load(int part, int64_t u) const {
    return LoadN(data + part * stride + u, width - u);
  }
};

// The normalised value of an element x is (x - mean) * scale.
template <class T>
struct Moments {
  T mean = 0, scale = 0;

  TF_LSTM_OPS_INLINE VecT<T> Normalize(VecT<T> x) const {
    return (x - mean) * scale;
  }
};

// scale = 1 / sqrt(variance + epsilon). The order of the sums depends on the
// shape of the row only.
template <class T>
Moments<T> MomentsOf(const RowParts<T>& row, double epsilon) {
  constexpr int kL = kLanes<T>;
  const T size = static_cast<T>(row.size());
  VecT<T> sum = {}, squares = {};
  for (int64_t u = 0; u < row.width; u += kL) {
    VecT<T> some = row.Load(0, u);
    for (int p = 1; p < row.parts; ++p) some = some + row.Load(p, u);
    sum = sum + some;
  }
  Moments<T> of;
  of.mean = SumOfLanes<T>(sum) / size;
  const VecT<T> ones = Broadcast(T(1));
  T one[kL];
  Store(ones, one);
  for (int64_t u = 0; u < row.width; u += kL) {
    const VecT<T> inside = LoadN(one, row.width - u);  // else 0
    VecT<T> some = {};
    for (int p = 0; p < row.parts; ++p) {
      const VecT<T> d = (row.Load(p, u) - of.mean) * inside;
      some = Fma(d, d, some);
    }
    squares = squares + some;
  }
  const double variance = SumOfLanes<T>(squares) / size;
  of.scale = static_cast<T>(1 / __builtin_sqrt(variance + epsilon));
  return of;
}

// The normalised parts of a row. Scales, offsets and biases are by the gate
// order of the weights.
template <class T, class Cell>
struct NormalizedRow {
  using V = VecT<T>;
  using Plain = typename Cell::Plain;
  static constexpr int kPlain = Plain::kPreActivations;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;

  // `parts` has the parts of x and then those of h, `stride` elements apart.
  template <class Args>
  NormalizedRow(const Args& args, const T* parts, int64_t stride)
      : weights(args.weights),
        block(args.config.gate_order.block.data()),
        cell(args.config.cell_size),
        x{parts, kInputs, cell, stride},
        h{parts + kInputs * stride, kRecurrent, cell, stride},
        of_x(MomentsOf(x, args.config.options.layer_norm.epsilon)),
        of_h(MomentsOf(h, args.config.options.layer_norm.epsilon)) {}

  // The normalised part of x, or of h, by number of the part.
  TF_LSTM_OPS_INLINE V X(int k, int64_t u) const {
    return of_x.Normalize(x.Load(k, u));
  }
  TF_LSTM_OPS_INLINE V H(int k, int64_t u) const {
    return of_h.Normalize(h.Load(k, u));
  }
  TF_LSTM_OPS_INLINE V XScale(int k, int64_t u) const {
    return At(weights.input_scale, k, u);
  }
  TF_LSTM_OPS_INLINE V HScale(int k, int64_t u) const {
    return At(weights.recurrent_scale, kInputs + k, u);
  }

  // The pre-activations of the plain cell.
  TF_LSTM_OPS_INLINE void PreActivations(int64_t u, V (&z)[kPlain]) const {
    for (int p = 0; p < kPlain; ++p) {
      z[p] = V{};
      if (Cell::HasInput(p)) {
        z[p] = XScale(p, u) * X(p, u) + At(weights.input_bias, p, u);
      }
      if (Cell::HasRecurrent(p)) {
        const int k = Cell::RecurrentPart(p);
        z[p] = z[p] + (HScale(k, u) * H(k, u) +
                       At(weights.recurrent_bias, kInputs + k, u));
      }
    }
  }

  TF_LSTM_OPS_INLINE V At(const T* vector, int part, int64_t u) const {
    return vector ? LoadN(vector + block[part] * cell + u, cell - u) : V{};
  }

  const RnnWeights<const T>& weights;
  const int* const block;
  const int64_t cell;
  const RowParts<T> x, h;
  const Moments<T> of_x, of_h;
};

template <class T, class Cell>
struct LayerNormForward {
  using V = VecT<T>;
  using Plain = typename Cell::Plain;
  static constexpr int kL = kLanes<T>;

  // The equations of rows whose parts are in z, which they overwrite.
  static void ApplyCellToRows(const Forward<T>& f, const ForwardRows<T>& rows) {
    T* z = rows.z;
    for (int64_t e = rows.begin; e < rows.end; ++e, z += f.z_row()) {
      const PackedRow at = f.At(e);
      SaveParts(f, at, z);
      FinishRow(f, at, z);
      if constexpr (Plain::kHasCellState) FinishState(f, at, z);
    }
  }

  // The parts of x and of h, as the backward pass reads them.
  static void SaveParts(const Forward<T>& f, const PackedRow& e, const T* z) {
    if (!f.args.saved.Has(Cell::kPartsAt)) return;
    f.args.saved.At(Cell::kPartsAt, e.index, e.output, 0, [&](auto* to) {
      for (int p = 0; p < Cell::kPreActivations; ++p, to += f.cell_size) {
        for (int64_t u = 0; u < f.cell_size; u += kL) {
          StoreN(Load(z + p * f.padded_size + u), to + u, f.cell_size - u);
        }
      }
    });
  }

  // The plain cell's equations. Of an LSTM, stores cs and, in z, o.
  static void FinishRow(const Forward<T>& f, const PackedRow& e, T* z) {
    const NormalizedRow<T, Cell> row(f.args, z, f.padded_size);
    T* state = f.State(e);
    for (int64_t u = 0; u < f.cell_size; u += kL) {
      const int64_t width = f.cell_size - u;
      V sums[Plain::kPreActivations];
      row.PreActivations(u, sums);
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
  static void FinishState(const Forward<T>& f, const PackedRow& e, const T* o) {
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
      f.Save(kSavedCarry, e, u, carry);
    }
  }

  static void StoreH(const Forward<T>& f, V h, const PackedRow& e, int64_t u) {
    StoreN(h, f.H(e) + u, f.cell_size - u);
    StoreEffectiveH(f, h, e.batch, e.ordinal + 1, u);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_LAYER_NORM_H_
