// CellForward: ForwardPass with the equations of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_

#include "backends/cpu/simd/block.h"
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
  using Base::args_, Base::batch_, Base::batch_row_, Base::Bias, Base::cell_,
      Base::EffectiveH, Base::EffectiveHSets, Base::FactorWords, Base::H,
      Base::hidden_, Base::HiddenWords, Base::input_, Base::InputWords,
      Base::ordinal_, Base::output_row_, Base::packed_input_,
      Base::packed_recurrent_, Base::packs_, Base::pairs_, Base::PreviousH,
      Base::Projected, Base::rounded_x_, Base::RoundsX, Base::state_,
      Base::StoreEffectiveH, Base::unprojected_h_, Base::X, Base::Z;
  using typename Base::Rows;
  using typename Base::V;
  static constexpr int kTogether = 2;  // rows

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
          Store(acc[r][p], Z(range, e + r, p, u));
        }
      }
    }
  }

  template <bool kDropped>
  void StepOf(const Rows& range, int64_t u, bool reverse) {
    const int64_t begin = range.begin, end = range.end;
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
                          ? Load(Z(range, e + r, Cell::kFirstRecurrent + p, u))
                          : bias[p];
        }
      }
      if (packs_) {
        MultiplyRows<Cell::kRecurrentPreActivations, kDropped>(
            rows, a, batch_ * FactorWords(hidden_), packed, hidden_,
            {(e - begin) / kRows, reverse}, pairs_, acc);
      }
      for (int64_t r = 0; r < rows; r += kTogether) {
        if (rows - r == 1) {
          Apply<1>(range, e + r, 1, u, acc + r);
        } else {
          Apply<kTogether>(range, e + r, Min(rows - r, kTogether), u, acc + r);
        }
      }
    }
  }

  // The cell's equations for `rows` packed rows from e on, at most R, with the
  // sums of the recurrent pre-activations.
  template <int R>
  TF_LSTM_OPS_INLINE void Apply(
      const Rows& range, int64_t e, int64_t rows, int64_t u,
      const V (*sums)[Cell::kRecurrentPreActivations]) {
    using RowsCell = CellOf<BlockMath<T, R>>;
    const int64_t width = cell_ - u;
    const CellParameters<T, RowsCell> with(args_, u);
    Block<T, R> z[Cell::kPreActivations], state;
    for (int64_t r = 0; r < R; ++r) {
      const int64_t from = r < rows ? r : 0;  // others are computed in vain
      for (int p = 0; p < Cell::kFirstRecurrent; ++p)
        z[p].row[r] = Load(Z(range, e + from, p, u));
      for (int p = 0; p < Cell::kRecurrentPreActivations; ++p)
        z[Cell::kFirstRecurrent + p].row[r] = sums[from][p];
      state.row[r] = Cell::kHasState ? LoadN(State(e + from) + u, width) : V{};
    }
    const auto y = RowsCell::Forward(z, state, with.parameters());
    for (int64_t r = 0; r < rows; ++r) {
      if constexpr (Cell::kHasState) {
        StoreN((y.*RowsCell::kState).row[r], State(e + r) + u, width);
      }
      StoreH(y.h.row[r], e + r, u);
      const SavedActivations<T>& to = args_.saved;
      const int64_t row = to.packed ? e + r : output_row_[e + r];
      ForEachSaved<RowsCell>([&](auto k, auto member) {
        if (!to.data[k]) return;
        StoreN((y.*member).row[r], to.data[k] + row * to.stride[k] + u, width);
      });
    }
  }

  T* State(int64_t e) const { return state_ + batch_row_[e] * cell_; }

  // The outputs' cache lines arrive while the products are computed.
  void PrefetchOutputs(int64_t e, int64_t u) const {
    if (!Projected()) PrefetchToWrite(H(e) + u);
    const SavedActivations<T>& to = args_.saved;
    const int64_t row = to.packed ? e : output_row_[e];
    ForEachSaved<Cell>([&](auto k, auto) {
      if (to.data[k]) PrefetchToWrite(to.data[k] + row * to.stride[k] + u);
    });
  }

  void StoreH(V h, int64_t e, int64_t u) {
    T* to = Projected() ? unprojected_h_ + batch_row_[e] * cell_ : H(e);
    StoreN(h, to + u, cell_ - u);
    if (EffectiveHSets() > 0 && !Projected()) {
      StoreEffectiveH(h, batch_row_[e], ordinal_[e] + 1, u);
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
