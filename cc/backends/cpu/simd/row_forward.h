// RowForward: ForwardProducts with the equations of a layer-normalised cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_FORWARD_H_

#include "backends/cpu/simd/forward_products.h"
#include "backends/cpu/simd/row_terms.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class RowForward final : public ForwardProducts<T, CellOf> {
 public:
  using ForwardProducts<T, CellOf>::ForwardProducts;

 private:
  using Base = ForwardProducts<T, CellOf>;
  using Base::args_, Base::batch_row_, Base::cell_, Base::EffectiveHSets,
      Base::ForEachBlock, Base::H, Base::kFirst, Base::kL, Base::kRecurrent,
      Base::MultiplyRecurrent, Base::ordinal_, Base::output_row_, Base::padded_,
      Base::state_, Base::StoreEffectiveH, Base::Z, Base::ZParts;
  using typename Base::Cell;
  using typename Base::RecurrentSums;
  using typename Base::RowBlock;
  using typename Base::Rows;
  using typename Base::RowTile;
  using typename Base::Units;
  using typename Base::V;
  using Plain = typename Cell::Plain;
  using Terms = RowTerms<T, Cell>;

  // h R of all rows.
  void Step(const Rows& range, const Units& units, bool reverse,
            const T* dropped_x) override {
    ForEachBlock(range, dropped_x, [&](const RowBlock& block) {
      const int64_t last = units.end - kL;
      for (int64_t k = 0; k < units.end - units.begin; k += kL) {
        const int64_t u = reverse ? last - k : units.begin + k;
        for (int64_t r = 0; r < block.rows; r += kRows) {
          StoreRecurrent({block, r, Min(block.rows - r, kRows), u});
        }
      }
    });
  }

  void StoreRecurrent(const RowTile& tile) const {
    RecurrentSums sums = {};
    MultiplyRecurrent(tile, sums);
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kRecurrent; ++p) {
        Store(sums[r][p], Z(tile, r, kFirst + p));
      }
    }
  }

  void FinishRows(const Rows& range) override {
    T* z = range.z;
    for (int64_t e = range.begin; e < range.end; ++e) {
      FinishRow(e, z);
      z += ZParts() * padded_;
    }
  }

  // The equations of packed row e. Overwrites z.
  void FinishRow(int64_t e, T* z) {
    SaveTerms(e, z);
    const Terms terms(args_, z, padded_);
    T* state = state_ + batch_row_[e] * cell_;
    for (int64_t u = 0; u < cell_; u += kL) {
      const int64_t width = cell_ - u;
      V sums[Plain::kPreActivations];
      terms.PreActivations(u, sums);
      const V before = LoadN(state + u, width);
      if constexpr (Plain::kHasCellState) {
        const typename Plain::Outputs y = Plain::Gates(sums, before, {});
        StoreN(y.cs, state + u, width);
        StoreN(y.o, z + u, width);
      } else {
        const typename Plain::Outputs y = Plain::Forward(sums, before, {});
        StoreN(y.h, state + u, width);
        StoreH(y.h, e, u);
      }
    }
    if constexpr (Plain::kHasCellState) FinishState(e, z, state);
  }

  // n = gc * LN(cs) + bc, h = o * tanh(n).
  void FinishState(int64_t e, const T* o, T* state) {
    const LayerNormOptions& options = args_.config.options.layer_norm;
    const Moments<T> of =
        MomentsOf<T>({state, 1, cell_, cell_}, options.epsilon);
    for (int64_t u = 0; u < cell_; u += kL) {
      const int64_t width = cell_ - u;
      const V cs = LoadN(state + u, width);
      typename Plain::Outputs y = {};
      y.o = LoadN(o + u, width);
      y.cs = LoadN(args_.weights.state_scale + u, width) * of.Normalize(cs) +
             LoadN(args_.weights.state_offset + u, width);
      Plain::Output({}, V{}, {}, &y);
      StoreH(y.h, e, u);
      const V carry = options.carries_normalized_state ? y.cs : cs;
      StoreN(carry, state + u, width);
      if (args_.saved.data[kSavedCarry]) {
        StoreN(carry, SavedRow(kSavedCarry, e) + u, width);
      }
    }
  }

  void StoreH(V h, int64_t e, int64_t u) {
    StoreN(h, H(e) + u, cell_ - u);
    if (EffectiveHSets() > 0) {
      StoreEffectiveH(h, batch_row_[e], ordinal_[e] + 1, u);
    }
  }

  void SaveTerms(int64_t e, const T* z) const {
    if (!args_.saved.data[Cell::kTermsAt]) return;
    T* to = SavedRow(Cell::kTermsAt, e);
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      for (int64_t u = 0; u < cell_; u += kL) {
        StoreN(Load(z + p * padded_ + u), to + p * cell_ + u, cell_ - u);
      }
    }
  }

  T* SavedRow(int k, int64_t e) const {
    const SavedActivations<T>& to = args_.saved;
    return to.data[k] + (to.packed ? e : output_row_[e]) * to.stride[k];
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_FORWARD_H_
