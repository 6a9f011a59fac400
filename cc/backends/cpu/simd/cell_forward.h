// CellForward: ForwardPass with the equations of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_

#include "backends/cpu/simd/cells.h"
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
  static constexpr int kFirst = Cell::kFirstRecurrent;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;
  using InputSums = V[kRows][kInputs];
  using RecurrentSums = V[kRows][kRecurrent];

  // Packed rows [e, e + rows) of a range, at most kRows, and one vector of
  // units from u on.
  struct Tile {
    const Rows& range;
    int64_t e, rows, u;

    int64_t block() const { return (e - range.begin) / kRows; }
  };

  void ProjectUnits(const Rows& range, int64_t u, const T* dropped_x) override {
    V bias[Cell::kPreActivations];
    LoadBias(u, bias);
    for (int64_t e = range.begin; e < range.end; e += kRows) {
      const Tile tile = {range, e, Min(range.end - e, kRows), u};
      InputSums sums;
      MultiplyInput(tile, bias, dropped_x, sums);
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int p = 0; p < kInputs; ++p)
          Store(sums[r][p], Z(range, e + r, p, u));
      }
    }
  }

  void Step(const Rows& range, int64_t u, bool reverse,
            const T* dropped_x) override {
    const CellParameters<T, Cell> with(args_, u);
    V bias[Cell::kPreActivations];
    LoadBias(u, bias);
    for (int64_t e = range.begin; e < range.end; e += kRows) {
      const Tile tile = {range, e, Min(range.end - e, kRows), u};
      for (int64_t r = 0; r < tile.rows; ++r) PrefetchOutputs(e + r, u);
      InputSums input;
      if (range.z) {
        LoadInputSums(tile, input);
      } else {
        MultiplyInput(tile, bias, dropped_x, input);
      }
      if constexpr (kFirst == 0 && kInputs == kRecurrent) {
        MultiplyRecurrent(tile, reverse, input);
        Apply(tile, with.parameters(), input, input);
      } else {
        RecurrentSums sums;
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int p = kFirst; p < Cell::kPreActivations; ++p)
            sums[r][p - kFirst] = p < kInputs ? input[r][p] : bias[p];
        }
        MultiplyRecurrent(tile, reverse, sums);
        Apply(tile, with.parameters(), input, sums);
      }
    }
  }

  void LoadBias(int64_t u, V (&bias)[Cell::kPreActivations]) const {
    for (int p = 0; p < Cell::kPreActivations; ++p) bias[p] = Bias(p, u);
  }

  // sums = x W + bias.
  void MultiplyInput(const Tile& tile, const V* bias, const T* dropped_x,
                     InputSums& sums) const {
    const int64_t words = FactorWords(input_);
    const T* a[kRows] = {};
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t e = tile.e + r;
      a[r] = dropped_x   ? dropped_x + (e - tile.range.begin) * kInputs * words
             : RoundsX() ? rounded_x_ + e * words
                         : X(e);
      for (int p = 0; p < kInputs; ++p) sums[r][p] = bias[p];
    }
    if (!args_.weights.input) return AddInput(tile, sums);
    MultiplyRows<kInputs>(dropped_x != nullptr, tile.rows, a, words,
                          packed_input_ + tile.u * InputWords() * kInputs,
                          input_, {tile.block()}, pairs_, sums);
  }

  // sums += x, of a layer without input weights.
  void AddInput(const Tile& tile, InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) {
        const T* x = X(tile.e + r) +
                     Base::Block(p) * args_.config.x_gate_stride + tile.u;
        sums[r][p] = LoadN(x, cell_ - tile.u) + sums[r][p];
      }
    }
  }

  void LoadInputSums(const Tile& tile, InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p)
        sums[r][p] = Load(Z(tile.range, tile.e + r, p, tile.u));
    }
  }

  // sums += h R.
  void MultiplyRecurrent(const Tile& tile, bool reverse,
                         RecurrentSums& sums) const {
    if (!packs_) return;  // the products are in z
    const bool reads_h = EffectiveHSets() == 0;
    const T* a[kRows] = {};
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t e = tile.e + r;
      a[r] = reads_h ? PreviousH(e) : EffectiveH(batch_row_[e], ordinal_[e], 0);
    }
    MultiplyRows<kRecurrent>(
        args_.recurrent_dropout.data != nullptr, tile.rows, a,
        batch_ * FactorWords(hidden_),
        packed_recurrent_ + tile.u * HiddenWords() * kRecurrent, hidden_,
        {tile.block(), reverse}, pairs_, sums);
  }

  // The cell's equations. `input` has the sums of the pre-activations without
  // recurrent weights.
  TF_LSTM_OPS_INLINE void Apply(const Tile& tile,
                                const typename Cell::Parameters& with,
                                const InputSums& input,
                                const RecurrentSums& sums) {
    const int64_t u = tile.u, width = cell_ - u;
    V z[kRows][Cell::kPreActivations], state[kRows];
    typename Cell::Outputs y[kRows];
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < Cell::kPreActivations; ++p)
        z[r][p] = p < kFirst ? input[r][p] : sums[r][p - kFirst];
      state[r] = Cell::kHasState ? LoadN(State(tile.e + r) + u, width) : V{};
      y[r] = Cell::Gates(z[r], state[r], with);
    }
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t e = tile.e + r;
      Cell::Output(z[r], state[r], with, &y[r]);
      if constexpr (Cell::kHasState)
        StoreN(y[r].*Cell::kState, State(e) + u, width);
      StoreH(y[r].h, e, u);
      const SavedActivations<T>& to = args_.saved;
      const int64_t row = to.packed ? e : output_row_[e];
      ForEachSaved<Cell>([&](auto k, auto member) {
        if (!to.data[k]) return;
        StoreN(y[r].*member, to.data[k] + row * to.stride[k] + u, width);
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
