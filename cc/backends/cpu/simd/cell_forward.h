// CellForward: ForwardPass with the equations of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_

#include "backends/cpu/simd/forward.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class CellForward final : public ForwardPass<T> {
 public:
  CellForward(const EngineForward<T>& args, int threads, bool keeps_weights,
              bool filled)
      : Base(args, kShapeOf<Cell>, threads, keeps_weights, filled) {}

 private:
  using Base = ForwardPass<T>;
  using Cell = CellOf<VecMath<T>>;
  using Outputs = typename Cell::Outputs;
  using Base::args_, Base::batch_, Base::batch_row_, Base::Bias, Base::cell_,
      Base::EffectiveH, Base::EffectiveHSets, Base::FactorWords, Base::H,
      Base::hidden_, Base::HiddenWords, Base::input_, Base::InputWords,
      Base::ordinal_, Base::output_row_, Base::packed_input_,
      Base::packed_recurrent_, Base::packs_, Base::pairs_, Base::PreviousH,
      Base::Projected, Base::rounded_x_, Base::RoundsX, Base::state_,
      Base::StoreEffectiveH, Base::unprojected_h_, Base::X, Base::Z;
  using typename Base::Rows;
  using typename Base::V;

  void ProjectUnits(const Rows& range, const V* bias, int64_t u,
                    const T* dropped_x) override {
    if (args_.input_dropout.data) {
      ProjectUnitsOf<true>(range, bias, u, dropped_x);
    } else {
      ProjectUnitsOf<false>(range, bias, u, nullptr);
    }
  }

  void Step(const Rows& range, int64_t u, bool reverse) override {
    if (args_.recurrent_dropout.data) {
      StepOf<true>(range, u, reverse);
    } else {
      StepOf<false>(range, u, reverse);
    }
  }

  template <bool kDropped>
  void ProjectUnitsOf(const Rows& range, const V* bias, int64_t u,
                      const T* dropped_x) {
    const int64_t begin = range.begin, end = range.end;
    const int64_t first = range.chunk;
    const T* packed =
        packed_input_ + u * InputWords() * Cell::kInputPreActivations;
    const int64_t words = FactorWords(input_);
    for (int64_t e = begin; e < end; e += kRows) {
      const int64_t rows = Min(end - e, kRows);
      const T* a[kRows] = {};
      V acc[kRows][Cell::kInputPreActivations];
      for (int64_t r = 0; r < rows; ++r) {
        a[r] = kDropped ? dropped_x + (e + r - begin) *
                                          Cell::kInputPreActivations * words
               : RoundsX() ? rounded_x_ + (e + r) * words
                           : X(e + r);
        for (int p = 0; p < Cell::kInputPreActivations; ++p)
          acc[r][p] = bias[p];
      }
      MultiplyRows<Cell::kInputPreActivations, kDropped>(
          rows, a, words, packed, input_, {(e - begin) / kRows}, pairs_, acc);
      for (int64_t r = 0; r < rows; ++r) {
        for (int p = 0; p < Cell::kInputPreActivations; ++p) {
          Store(acc[r][p], Z(e + r - first, p, u));
        }
      }
    }
  }

  template <bool kDropped>
  void StepOf(const Rows& range, int64_t u, bool reverse) {
    const int64_t begin = range.begin, end = range.end;
    const int64_t first = range.chunk;
    const int64_t width = cell_ - u;
    const CellParameters<T, Cell> with(args_, u);
    V bias[Cell::kRecurrentPreActivations];  // of those without input weights
    for (int p = 0; p < Cell::kRecurrentPreActivations; ++p) {
      bias[p] = Cell::kFirstRecurrent + p < Cell::kInputPreActivations
                    ? V{}
                    : Bias(Cell::kFirstRecurrent + p, u);
    }
    const T* packed =
        packed_recurrent_ + u * HiddenWords() * Cell::kRecurrentPreActivations;
    const bool reads_h = EffectiveHSets() == 0;
    for (int64_t e = begin; e < end; e += kRows) {
      const int64_t rows = Min(end - e, kRows);
      const T* a[kRows] = {};
      V acc[kRows][Cell::kRecurrentPreActivations];
      for (int64_t r = 0; r < rows; ++r) {
        PrefetchOutputs(e + r, u);
        a[r] = reads_h ? PreviousH(e + r)
                       : EffectiveH(batch_row_[e + r], ordinal_[e + r], 0);
        for (int p = 0; p < Cell::kRecurrentPreActivations; ++p) {
          acc[r][p] = Cell::kFirstRecurrent + p < Cell::kInputPreActivations
                          ? Load(Z(e + r - first, Cell::kFirstRecurrent + p, u))
                          : bias[p];
        }
      }
      if (packs_) {
        MultiplyRows<Cell::kRecurrentPreActivations, kDropped>(
            rows, a, batch_ * FactorWords(hidden_), packed, hidden_,
            {(e - begin) / kRows, reverse}, pairs_, acc);
      }
      for (int64_t r = 0; r < rows; ++r) {
        V z[Cell::kPreActivations];
        for (int p = 0; p < Cell::kFirstRecurrent; ++p)
          z[p] = Load(Z(e + r - first, p, u));
        for (int p = 0; p < Cell::kRecurrentPreActivations; ++p)
          z[Cell::kFirstRecurrent + p] = acc[r][p];
        T* state =
            Cell::kHasState ? state_ + batch_row_[e + r] * cell_ + u : nullptr;
        const Outputs y = Cell::Forward(
            z, Cell::kHasState ? LoadN(state, width) : V{}, with.parameters());
        if constexpr (Cell::kHasState) StoreN(y.*Cell::kState, state, width);
        StoreOutputs(y, e + r, u);
      }
    }
  }

  // The outputs' cache lines arrive while the products are computed.
  void PrefetchOutputs(int64_t e, int64_t u) const {
    if (!Projected()) PrefetchToWrite(H(e) + u);
    const SavedActivations<T>& to = args_.saved;
    const int64_t row = to.packed ? e : output_row_[e];
    ForEachSaved<Cell>([&](auto k, auto) {
      if (to.data[k]) PrefetchToWrite(to.data[k] + row * to.stride[k] + u);
    });
  }

  void StoreOutputs(const Outputs& y, int64_t e, int64_t u) {
    const int64_t width = cell_ - u;
    T* h = Projected() ? unprojected_h_ + batch_row_[e] * cell_ : H(e);
    StoreN(y.h, h + u, width);
    if (EffectiveHSets() > 0 && !Projected()) {
      StoreEffectiveH(y.h, batch_row_[e], ordinal_[e] + 1, u);
    }
    const SavedActivations<T>& to = args_.saved;
    const int64_t row = to.packed ? e : output_row_[e];
    ForEachSaved<Cell>([&](auto k, auto member) {
      if (!to.data[k]) return;
      StoreN(y.*member, to.data[k] + row * to.stride[k] + u, width);
    });
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
