// CellForward: ForwardProducts with the equations of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_FORWARD_H_

#include "backends/cpu/simd/forward_products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class CellForward final : public ForwardProducts<T, CellOf> {
 public:
  using ForwardProducts<T, CellOf>::ForwardProducts;

 private:
  using Base = ForwardProducts<T, CellOf>;
  using Base::args_, Base::batch_row_, Base::cell_, Base::EffectiveHSets,
      Base::ForEachBlock, Base::kFirst, Base::kInputs, Base::kL,
      Base::kRecurrent, Base::LoadBias, Base::LoadInputSums,
      Base::MultiplyInput, Base::MultiplyRecurrent, Base::ordinal_,
      Base::output_row_, Base::Projected, Base::StoreEffectiveH;
  using typename Base::Cell;
  using typename Base::InputSums;
  using typename Base::RecurrentSums;
  using typename Base::RowBlock;
  using typename Base::Rows;
  using typename Base::RowTile;
  using typename Base::Units;
  using typename Base::V;

  void Step(const Rows& range, const Units& units, bool reverse,
            const T* dropped_x) override {
    ForEachBlock(range, dropped_x, [&](const RowBlock& block) {
      const int64_t last = units.end - kL;
      for (int64_t u = units.begin; u < units.end; u += kL) {
        StepOfUnits(block, reverse ? units.begin + last - u : u);
      }
    });
  }

  void FinishRows(const Rows&) override {}  // Step does all

  void StepOfUnits(const RowBlock& block, int64_t u) {
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
        MultiplyRecurrent(tile, input);
        Apply(tile, with.parameters(), input);
      } else {
        V z[kRows][Cell::kPreActivations];
        RecurrentSums sums;
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int p = kFirst; p < Cell::kPreActivations; ++p)
            sums[r][p - kFirst] = p < kInputs ? input[r][p] : bias[p];
        }
        MultiplyRecurrent(tile, sums);
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int p = 0; p < Cell::kPreActivations; ++p)
            z[r][p] = p < kFirst ? input[r][p] : sums[r][p - kFirst];
        }
        Apply(tile, with.parameters(), z);
      }
    }
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
