// RowBackward: BackwardPass with the equations of a layer-normalised cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_BACKWARD_H_

#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/row_terms.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class RowBackward final : public BackwardPass<T> {
 public:
  RowBackward(const EngineBackward<T>& args, int threads)
      : Base(args, kShapeOf<Cell>, threads) {}

 private:
  using Base = BackwardPass<T>;
  using Math = VecMath<T>;
  using Cell = CellOf<Math>;
  using Plain = typename Cell::Plain;
  using Terms = RowTerms<T, Cell>;
  using V = VecT<T>;
  using Base::args_, Base::batch_row_, Base::Block, Base::cell_, Base::kL,
      Base::output_row_, Base::padded_, Base::previous_, Base::PreviousH,
      Base::state_grad_, Base::StorePreActivationGrad, Base::sums_,
      Base::UpstreamH, Base::weights_grad_, Base::WriteTotal;
  using typename Base::Rows;
  static constexpr int kPlain = Plain::kPreActivations;
  static constexpr int kInputs = Cell::kInputPreActivations;

  // Values of a row: the gradients dz of the plain cell's pre-activations, then
  // those of an LSTM below.
  enum Value { kI = kPlain, kF, kCi, kO, kCs, kNGrad, kValueCount };
  static_assert(kValueCount <= Base::kRowValues);

  // Sums over the rows. The first kPlain ones are those of dz.
  enum Sum { kXScale = 4, kHScale = 8, kStateScale = 12, kStateOffset };

  void Cells(const Rows&, int64_t, int64_t, int64_t) override {}  // CellRows

  void CellRows(const Rows& rows, T* values) override {
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      const Terms terms(args_, SavedRow(Cell::kTermsAt, e), cell_);
      if constexpr (Plain::kHasCellState) {
        RestoreGates(terms, e, values);
        StateBackward(rows, e, values);
      } else {
        PlainBackward(terms, e, values);
      }
      TermsBackward(terms, rows, e, values);
    }
  }

  // An LSTM's gates, and its cell state before the normalisation.
  void RestoreGates(const Terms& terms, int64_t e, T* values) const {
    const T* before = PreviousCarry(e);
    for (int64_t u = 0; u < cell_; u += kL) {
      V z[kPlain];
      terms.PreActivations(u, z);
      const auto y = Plain::Gates(z, LoadN(before + u, cell_ - u), {});
      Store(y.i, At(values, kI, u));
      Store(y.f, At(values, kF, u));
      Store(y.ci, At(values, kCi, u));
      Store(y.o, At(values, kO, u));
      Store(y.cs, At(values, kCs, u));
    }
  }

  // From the gradients of h and of the state to dz of an LSTM.
  void StateBackward(const Rows& rows, int64_t e, T* values) const {
    const LayerNormOptions& options = args_.config.options.layer_norm;
    const bool carries_n = options.carries_normalized_state;
    const Moments<T> of =
        MomentsOf<T>({At(values, kCs, 0), 1, cell_, padded_}, options.epsilon);
    T* state_grad = state_grad_ + batch_row_[e] * cell_;
    NormGradient<T> norm;
    for (int64_t u = 0; u < cell_; u += kL) {
      const V v = of.Normalize(Load(At(values, kCs, u)));
      const V scale = StateScale(u);
      const V offset = LoadN(args_.weights.state_offset + u, cell_ - u);
      V zo, n_grad;
      Cell::OutputGradients(Load(At(values, kO, u)),
                            Math::Tanh(scale * v + offset), HGrad(e, u), &zo,
                            &n_grad);
      if (carries_n) n_grad = n_grad + LoadN(state_grad + u, cell_ - u);
      Store(zo, At(values, kGateO, u));
      Store(n_grad, At(values, kNGrad, u));
      Add(n_grad * v, rows, kStateScale, u);
      Add(n_grad, rows, kStateOffset, u);
      norm.Add(n_grad * scale, v);
    }
    norm.Finish(cell_);
    const T* before = PreviousCarry(e);
    for (int64_t u = 0; u < cell_; u += kL) {
      const int64_t width = cell_ - u;
      const V v = of.Normalize(Load(At(values, kCs, u)));
      V cs = norm.Of(Load(At(values, kNGrad, u)) * StateScale(u), v, of.scale);
      if (!carries_n) cs = cs + LoadN(state_grad + u, width);
      V z[kPlain], state;
      Cell::StateGradients(Load(At(values, kI, u)), Load(At(values, kF, u)),
                           Load(At(values, kCi, u)), LoadN(before + u, width),
                           cs, z, &state);
      for (const int p : {kGateI, kGateF, kGateC})
        Store(z[p], At(values, p, u));
      StoreN(state, state_grad + u, width);
    }
  }

  // The same of a GRU.
  void PlainBackward(const Terms& terms, int64_t e, T* values) const {
    const T* before = PreviousH(e);
    T* state_grad = state_grad_ + batch_row_[e] * cell_;
    for (int64_t u = 0; u < cell_; u += kL) {
      const int64_t width = cell_ - u;
      V z[kPlain];
      terms.PreActivations(u, z);
      const V h = LoadN(before + u, width);
      typename Plain::Outputs y = Plain::Gates(z, h, {}), grad = {};
      Plain::Output(z, h, {}, &y);
      grad.h = LoadN(state_grad + u, width) + HGrad(e, u);
      const auto d = Plain::Backward(y, h, grad, {});
      for (int p = 0; p < kPlain; ++p) Store(d.z[p], At(values, p, u));
      StoreN(d.state, state_grad + u, width);
    }
  }

  // From dz of the plain cell to the gradients of the terms, and the sums.
  void TermsBackward(const Terms& terms, const Rows& rows, int64_t e,
                     const T* values) const {
    NormGradient<T> x, h;
    for (int64_t u = 0; u < cell_; u += kL) {
      for (int p = 0; p < kPlain; ++p) {
        const V z = Load(At(values, p, u));
        Add(z, rows, p, u);
        if (Cell::HasInput(p)) {
          const V v = terms.X(p, u);
          Add(z * v, rows, kXScale + p, u);
          x.Add(z * terms.XScale(p, u), v);
        }
        if (Cell::HasRecurrent(p)) {
          const int k = Cell::RecurrentTerm(p);
          const V v = terms.H(k, u);
          Add(z * v, rows, kHScale + k, u);
          h.Add(z * terms.HScale(k, u), v);
        }
      }
    }
    x.Finish(terms.x_size());
    h.Finish(terms.h_size());
    for (int64_t u = 0; u < cell_; u += kL) {
      for (int p = 0; p < kPlain; ++p) {
        const V z = Load(At(values, p, u));
        if (Cell::HasInput(p)) {
          StorePreActivationGrad(
              rows, e, p, u,
              x.Of(z * terms.XScale(p, u), terms.X(p, u), terms.of_x().scale));
        }
        if (Cell::HasRecurrent(p)) {
          const int k = Cell::RecurrentTerm(p);
          StorePreActivationGrad(
              rows, e, kInputs + k, u,
              h.Of(z * terms.HScale(k, u), terms.H(k, u), terms.of_h().scale));
        }
      }
    }
  }

  void WriteRowSums(int64_t u) const override {
    const RnnWeights<T>& to = weights_grad_;
    const auto write = [&](int sum, T* vector, int term) {
      if (!vector) return;
      WriteTotal(sums_ + sum * padded_, u, vector + Block(term) * cell_);
    };
    for (int p = 0; p < kPlain; ++p) {
      if (Cell::HasInput(p)) {
        write(p, to.input_bias, p);
        write(kXScale + p, to.input_scale, p);
      }
      if (Cell::HasRecurrent(p)) {
        const int k = Cell::RecurrentTerm(p);
        write(p, to.recurrent_bias, kInputs + k);
        write(kHScale + k, to.recurrent_scale, kInputs + k);
      }
    }
    WriteTotal(sums_ + kStateScale * padded_, u, to.state_scale);
    WriteTotal(sums_ + kStateOffset * padded_, u, to.state_offset);
  }

  // One vector of a value.
  T* At(T* values, int value, int64_t u) const {
    return values + value * padded_ + u;
  }
  const T* At(const T* values, int value, int64_t u) const {
    return values + value * padded_ + u;
  }

  void Add(V value, const Rows& rows, int sum, int64_t u) const {
    T* to = rows.sums + sum * padded_ + u;
    Store(Load(to) + value, to);
  }

  V StateScale(int64_t u) const {
    return LoadN(args_.weights.state_scale + u, cell_ - u);
  }

  V HGrad(int64_t e, int64_t u) const {
    return LoadN(args_.h0_grad.data + batch_row_[e] * cell_ + u, cell_ - u) +
           UpstreamH(e, u);
  }

  // The state that the step of packed row e reads, of an LSTM.
  const T* PreviousCarry(int64_t e) const {
    const int64_t p = previous_[e];
    return p < 0 ? args_.c0.data + batch_row_[e] * cell_
                 : SavedRow(kSavedCarry, p);
  }

  const T* SavedRow(int k, int64_t e) const {
    const SavedActivations<const T>& from = args_.saved;
    return from.data[k] + (from.packed ? e : output_row_[e]) * from.stride[k];
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_BACKWARD_H_
