// The backward equations of a layer-normalised cell, for whole rows.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_LAYER_NORM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_LAYER_NORM_H_

#include "backends/cpu/simd/backward/state.h"
#include "backends/cpu/simd/forward/layer_norm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The gradient of a row x that was normalised, from the gradients t of the
// normalised values v: dx = scale * (t - mean(t) - v * mean(t * v)).
template <class T>
class NormGradient {
 public:
  // Adds one vector of t and v to the sums. t is zero behind the row's end.
  TF_LSTM_OPS_INLINE void Add(VecT<T> t, VecT<T> v) {
    sum_ = sum_ + t;
    products_ = Fma(t, v, products_);
  }
  // Call it after the last Add. `size` is the number of elements of the row.
  void Finish(int64_t size) {
    mean_ = SumOfLanes<T>(sum_) / static_cast<T>(size);
    mean_product_ = SumOfLanes<T>(products_) / static_cast<T>(size);
  }
  TF_LSTM_OPS_INLINE VecT<T> Of(VecT<T> t, VecT<T> v, T scale) const {
    return (t - mean_ - v * mean_product_) * scale;
  }

 private:
  VecT<T> sum_ = {}, products_ = {};
  T mean_ = 0, mean_product_ = 0;
};

template <class T, class Cell>
struct LayerNormBackward {
  using V = VecT<T>;
  using Math = VecMath<T>;
  using Rows = BackwardRows<T>;
  using Plain = typename Cell::Plain;
  using Normalized = NormalizedRow<T, Cell>;
  static constexpr int kL = kLanes<T>;
  static constexpr int kPlain = Plain::kPreActivations;
  static constexpr int kInputs = Cell::kInputPreActivations;

  // Values of a row [., H']: the gradients dz of the plain cell's
  // pre-activations, then those of an LSTM below.
  enum Value { kI = kPlain, kF, kCi, kO, kCs, kNGrad, kValueCount };
  static_assert(kValueCount + Cell::kPreActivations <= Backward<T>::kRowValues);

  // Sums over the rows [., H']. The first kPlain ones are those of dz.
  enum Sum { kXScale = 4, kHScale = 8, kStateScale = 12, kStateOffset };

  // One packed row.
  struct Row {
    const Backward<T>& f;
    const Rows& rows;
    const PackedRow e;
    T* const values;

    T* At(int value, int64_t u) const {
      return values + value * f.padded_size + u;
    }
    V Get(int value, int64_t u) const { return Load(At(value, u)); }
    void Set(int value, int64_t u, V v) const { Store(v, At(value, u)); }
    void AddToSum(int sum, int64_t u, V v) const {
      T* to = rows.sums + sum * f.padded_size + u;
      Store(Load(to) + v, to);
    }
    V HGrad(int64_t u) const {
      return LoadN(f.RunningHGrad(e) + u, f.cell_size - u) + f.UpstreamH(e, u);
    }
  };

  static void RunRows(const Backward<T>& f, const Rows& rows, int thread) {
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      const Row row = {f, rows, f.At(e),
                       f.row_values + thread * f.RowValuesSize()};
      const Normalized normalized(f.args, Parts(row), f.cell_size);
      if constexpr (Plain::kHasCellState) {
        RestoreGates(row, normalized);
        StateBackward(row);
      } else {
        PlainBackward(row, normalized);
      }
      PartsBackward(row, normalized);
    }
  }

  // The parts [., H] of a row. bfloat16 parts are copied behind its values.
  static const T* Parts(const Row& row) {
    const int64_t size = Cell::kPreActivations * row.f.cell_size;
    T* copy = row.At(kValueCount, 0);
    return row.f.args.saved.At(
        Cell::kPartsAt, row.e.index, row.e.output, 0,
        [&](const auto* parts) -> const T* {
          if constexpr (std::is_same_v<decltype(parts), const T*>) return parts;
          for (int64_t k = 0; k < size; k += kL) {
            StoreN(LoadN(parts + k, size - k), copy + k, size - k);
          }
          return copy;
        });
  }

  // An LSTM's gates, and its cell state before the normalisation.
  static void RestoreGates(const Row& row, const Normalized& normalized) {
    for (int64_t u = 0; u < row.f.cell_size; u += kL) {
      V z[kPlain];
      normalized.PreActivations(u, z);
      const V before = row.f.PreviousState(kSavedCarry, row.e, u);
      const auto y = Plain::Gates(z, before, {});
      row.Set(kI, u, y.i);
      row.Set(kF, u, y.f);
      row.Set(kCi, u, y.ci);
      row.Set(kO, u, y.o);
      row.Set(kCs, u, y.cs);
    }
  }

  // From the gradients of h and of the state to dz of an LSTM.
  static void StateBackward(const Row& row) {
    const Backward<T>& f = row.f;
    const LayerNormOptions& options = f.args.config.options.layer_norm;
    const bool carries_n = options.carries_normalized_state;
    const Moments<T> of = MomentsOf<T>(
        {row.At(kCs, 0), 1, f.cell_size, f.padded_size}, options.epsilon);
    const T* state_scale = f.args.weights.state_scale;
    T* state_grad = f.StateGrad(row.e);
    NormGradient<T> norm;
    for (int64_t u = 0; u < f.cell_size; u += kL) {
      const int64_t width = f.cell_size - u;
      const V v = of.Normalize(row.Get(kCs, u));
      const V scale = LoadN(state_scale + u, width);
      const V offset = LoadN(f.args.weights.state_offset + u, width);
      typename Plain::Outputs y = {}, grad = {};
      y.o = row.Get(kO, u);
      y.co = Math::Tanh(scale * v + offset);
      grad.h = row.HGrad(u);
      V zo;
      V n_grad = Plain::OutputBackward(y, grad, {}, &zo);
      if (carries_n) n_grad = n_grad + LoadN(state_grad + u, width);
      row.Set(kGateO, u, zo);
      row.Set(kNGrad, u, n_grad);
      row.AddToSum(kStateScale, u, n_grad * v);
      row.AddToSum(kStateOffset, u, n_grad);
      norm.Add(n_grad * scale, v);
    }
    norm.Finish(f.cell_size);
    for (int64_t u = 0; u < f.cell_size; u += kL) {
      const int64_t width = f.cell_size - u;
      const V v = of.Normalize(row.Get(kCs, u));
      V cs = norm.Of(row.Get(kNGrad, u) * LoadN(state_scale + u, width), v,
                     of.scale);
      if (!carries_n) cs = cs + LoadN(state_grad + u, width);
      typename Plain::Outputs y = {}, no_grad = {};
      y.i = row.Get(kI, u);
      y.f = row.Get(kF, u);
      y.ci = row.Get(kCi, u);
      typename Plain::Gradients d;
      Plain::StateBackward(y, f.PreviousState(kSavedCarry, row.e, u), no_grad,
                           cs, {}, &d);
      for (const int p : {kGateI, kGateF, kGateC}) row.Set(p, u, d.z[p]);
      StoreN(d.state, state_grad + u, width);
    }
  }

  // The same of a GRU.
  static void PlainBackward(const Row& row, const Normalized& normalized) {
    const T* before = row.f.PreviousH(row.e);
    T* state_grad = row.f.StateGrad(row.e);
    for (int64_t u = 0; u < row.f.cell_size; u += kL) {
      const int64_t width = row.f.cell_size - u;
      V z[kPlain];
      normalized.PreActivations(u, z);
      const V h = LoadN(before + u, width);
      typename Plain::Outputs y = Plain::Gates(z, h, {}), grad = {};
      Plain::Output(z, h, {}, &y);
      grad.h = LoadN(state_grad + u, width) + row.HGrad(u);
      const auto d = Plain::Backward(y, h, grad, {});
      for (int p = 0; p < kPlain; ++p) row.Set(p, u, d.z[p]);
      StoreN(d.state, state_grad + u, width);
    }
  }

  // From dz of the plain cell to the gradients of the parts, and the sums.
  static void PartsBackward(const Row& row, const Normalized& normalized) {
    NormGradient<T> x, h;
    for (int64_t u = 0; u < row.f.cell_size; u += kL) {
      for (int p = 0; p < kPlain; ++p) {
        const V z = row.Get(p, u);
        row.AddToSum(p, u, z);
        if (Cell::HasInput(p)) {
          const V v = normalized.X(p, u);
          row.AddToSum(kXScale + p, u, z * v);
          x.Add(z * normalized.XScale(p, u), v);
        }
        if (Cell::HasRecurrent(p)) {
          const int k = Cell::RecurrentPart(p);
          const V v = normalized.H(k, u);
          row.AddToSum(kHScale + k, u, z * v);
          h.Add(z * normalized.HScale(k, u), v);
        }
      }
    }
    x.Finish(normalized.x.size());
    h.Finish(normalized.h.size());
    for (int64_t u = 0; u < row.f.cell_size; u += kL) {
      for (int p = 0; p < kPlain; ++p) {
        const V z = row.Get(p, u);
        if (Cell::HasInput(p)) {
          StoreZGrad(row.f, row.rows, row.e.index, p, u,
                     x.Of(z * normalized.XScale(p, u), normalized.X(p, u),
                          normalized.of_x.scale));
        }
        if (Cell::HasRecurrent(p)) {
          const int k = Cell::RecurrentPart(p);
          StoreZGrad(row.f, row.rows, row.e.index, kInputs + k, u,
                     h.Of(z * normalized.HScale(k, u), normalized.H(k, u),
                          normalized.of_h.scale));
        }
      }
    }
  }

  // Writes the sums over all steps for one vector of units.
  static void WriteSums(const Backward<T>& f, int64_t u) {
    const RnnWeights<T>& to = f.args.weights_grad;
    const auto write = [&](int sum, T* vector, int part) {
      if (!vector) return;
      WriteTotal(f, f.sums + sum * f.padded_size, u,
                 vector + f.GateBlock(part) * f.cell_size);
    };
    for (int p = 0; p < kPlain; ++p) {
      if (Cell::HasInput(p)) {
        write(p, to.input_bias, p);
        write(kXScale + p, to.input_scale, p);
      }
      if (Cell::HasRecurrent(p)) {
        const int k = Cell::RecurrentPart(p);
        write(p, to.recurrent_bias, kInputs + k);
        write(kHScale + k, to.recurrent_scale, kInputs + k);
      }
    }
    WriteTotal(f, f.sums + kStateScale * f.padded_size, u, to.state_scale);
    WriteTotal(f, f.sums + kStateOffset * f.padded_size, u, to.state_offset);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_LAYER_NORM_H_
