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
      Base::DropsX, Base::EffectiveH, Base::EffectiveHSets, Base::FactorWords,
      Base::H, Base::hidden_, Base::input_, Base::kL, Base::kRowBlock,
      Base::padded_, Base::ordinal_, Base::output_row_, Base::Packs,
      Base::PreviousH, Base::Projected, Base::rounded_x_, Base::RoundsX,
      Base::state_, Base::StoreEffectiveH, Base::unprojected_h_, Base::weights_,
      Base::X;
  using typename Base::Rows;
  using typename Base::Units;
  using typename Base::V;
  static constexpr int kFirst = Cell::kFirstRecurrent;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;
  using InputSums = V[kRows][kInputs];
  using RecurrentSums = V[kRows][kRecurrent];

  // Up to kRowBlock packed rows from `begin` on, and what they read and write.
  struct RowBlock {
    int64_t begin, rows;
    T* z;  // null: z is computed from x
    const T *x[kRowBlock], *h[kRowBlock];
    T *new_h[kRowBlock], *state[kRowBlock];
  };
  // Rows [first, first + rows) of a block, at most kRows, and one vector of
  // units from u on.
  struct RowTile {
    const RowBlock& block;
    int64_t first, rows, u;

    int64_t e(int64_t r) const { return block.begin + first + r; }
  };

  void ProjectUnits(const Rows& range, const Units& units,
                    const T* dropped_x) override {
    ForEachBlock(range, dropped_x, [&](const RowBlock& block) {
      for (int64_t u = units.begin; u < units.end; u += kL) {
        V bias[Cell::kPreActivations];
        LoadBias(u, bias);
        for (int64_t k = 0; k < block.rows; k += kRows) {
          const RowTile tile = {block, k, Min(block.rows - k, kRows), u};
          InputSums sums;
          MultiplyInput(tile, bias, sums);
          for (int64_t r = 0; r < tile.rows; ++r) {
            for (int p = 0; p < kInputs; ++p) Store(sums[r][p], Z(tile, r, p));
          }
        }
      }
    });
  }

  void Step(const Rows& range, const Units& units, bool reverse,
            const T* dropped_x) override {
    ForEachBlock(range, dropped_x, [&](const RowBlock& block) {
      const int64_t last = units.end - kL;
      for (int64_t u = units.begin; u < units.end; u += kL) {
        StepOfUnits(block, reverse ? units.begin + last - u : u, reverse);
      }
    });
  }

  template <class F>
  void ForEachBlock(const Rows& range, const T* dropped_x, const F& f) {
    const int64_t words = FactorWords(input_);
    RowBlock block;
    for (int64_t b = range.begin; b < range.end; b += kRowBlock) {
      block.begin = b;
      block.rows = Min(range.end - b, kRowBlock);
      block.z =
          range.z ? range.z + (b - range.begin) * kInputs * padded_ : nullptr;
      for (int64_t r = 0; r < block.rows; ++r) {
        const int64_t e = b + r;
        block.x[r] = dropped_x ? dropped_x + (e - range.begin) * kInputs * words
                     : RoundsX() ? rounded_x_ + e * words
                                 : X(e);
        block.h[r] = EffectiveHSets() == 0
                         ? PreviousH(e)
                         : EffectiveH(batch_row_[e], ordinal_[e], 0);
        block.new_h[r] =
            Projected() ? unprojected_h_ + batch_row_[e] * cell_ : H(e);
        block.state[r] = state_ + batch_row_[e] * cell_;
      }
      f(block);
    }
  }

  void StepOfUnits(const RowBlock& block, int64_t u, bool reverse) {
    const CellParameters<T, Cell> with(args_, u);
    V bias[Cell::kPreActivations];
    LoadBias(u, bias);
    for (int64_t k = 0; k < block.rows; k += kRows) {
      const RowTile tile = {block, k, Min(block.rows - k, kRows), u};
      for (int64_t r = 0; r < tile.rows; ++r) PrefetchOutputs(tile, r);
      InputSums input;
      if (block.z) {
        LoadInputSums(tile, input);
      } else {
        MultiplyInput(tile, bias, input);
      }
      if constexpr (kFirst == 0 && kInputs == kRecurrent) {
        MultiplyRecurrent(tile, reverse, input);
        Apply(tile, with.parameters(), input);
      } else {
        V z[kRows][Cell::kPreActivations];
        RecurrentSums sums;
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int p = kFirst; p < Cell::kPreActivations; ++p)
            sums[r][p - kFirst] = p < kInputs ? input[r][p] : bias[p];
        }
        MultiplyRecurrent(tile, reverse, sums);
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int p = 0; p < Cell::kPreActivations; ++p)
            z[r][p] = p < kFirst ? input[r][p] : sums[r][p - kFirst];
        }
        Apply(tile, with.parameters(), z);
      }
    }
  }

  void LoadBias(int64_t u, V (&bias)[Cell::kPreActivations]) const {
    for (int p = 0; p < Cell::kPreActivations; ++p) bias[p] = Bias(p, u);
  }

  T* Z(const RowTile& tile, int64_t r, int part) const {
    return tile.block.z + ((tile.first + r) * kInputs + part) * padded_ +
           tile.u;
  }

  // sums = x W + bias.
  void MultiplyInput(const RowTile& tile, const V* bias,
                     InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) sums[r][p] = bias[p];
    }
    if (!args_.weights.input) return AddInput(tile, sums);
    MultiplyRows<kInputs>(DropsX(), tile.rows, tile.block.x + tile.first,
                          FactorWords(input_), weights_.input(tile.u), input_,
                          {tile.first / kRows}, weights_.format(), sums);
  }

  // sums += x, of a layer without input weights.
  void AddInput(const RowTile& tile, InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) {
        const T* x = tile.block.x[tile.first + r] +
                     Base::Block(p) * args_.config.x_gate_stride + tile.u;
        sums[r][p] = LoadN(x, cell_ - tile.u) + sums[r][p];
      }
    }
  }

  void LoadInputSums(const RowTile& tile, InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) sums[r][p] = Load(Z(tile, r, p));
    }
  }

  // sums += h R.
  void MultiplyRecurrent(const RowTile& tile, bool reverse,
                         RecurrentSums& sums) const {
    if (!Packs()) return;  // the products are in z
    MultiplyRows<kRecurrent>(
        args_.recurrent_dropout.data != nullptr, tile.rows,
        tile.block.h + tile.first, batch_ * FactorWords(hidden_),
        weights_.recurrent(tile.u), hidden_, {tile.first / kRows, reverse},
        weights_.format(), sums);
  }

  // The cell's equations.
  TF_LSTM_OPS_INLINE void Apply(const RowTile& tile,
                                const typename Cell::Parameters& with,
                                const V (*z)[Cell::kPreActivations]) {
    const int64_t u = tile.u, width = cell_ - u;
    T* const* states = tile.block.state + tile.first;
    T* const* new_h = tile.block.new_h + tile.first;
    V state[kRows];
    typename Cell::Outputs y[kRows];
    for (int64_t r = 0; r < tile.rows; ++r) {
      state[r] = Cell::kHasState ? LoadN(states[r] + u, width) : V{};
      y[r] = Cell::Gates(z[r], state[r], with);
    }
    for (int64_t r = 0; r < tile.rows; ++r) {
      Cell::Output(z[r], state[r], with, &y[r]);
      if constexpr (Cell::kHasState)
        StoreN(y[r].*Cell::kState, states[r] + u, width);
      StoreN(y[r].h, new_h[r] + u, width);
    }
    if (EffectiveHSets() > 0 && !Projected()) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t e = tile.e(r);
        StoreEffectiveH(y[r].h, batch_row_[e], ordinal_[e] + 1, u);
      }
    }
    const SavedActivations<T>& to = args_.saved;
    ForEachSaved<Cell>([&](auto k, auto member) {
      if (!to.data[k]) return;
      for (int64_t r = 0; r < tile.rows; ++r)
        StoreN(y[r].*member, SavedRow(k, tile.e(r)) + u, width);
    });
  }

  // The saved activation k of packed row e.
  T* SavedRow(int k, int64_t e) const {
    const SavedActivations<T>& to = args_.saved;
    return to.data[k] + (to.packed ? e : output_row_[e]) * to.stride[k];
  }

  // The outputs' cache lines arrive while the products are computed.
  void PrefetchOutputs(const RowTile& tile, int64_t r) const {
    PrefetchToWrite(tile.block.new_h[tile.first + r] + tile.u);
    ForEachSaved<Cell>([&](auto k, auto) {
      if (args_.saved.data[k]) PrefetchToWrite(SavedRow(k, tile.e(r)) + tile.u);
    });
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
