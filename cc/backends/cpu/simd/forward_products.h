// ForwardProducts: ForwardPass with the products of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_

#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/forward.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class ForwardProducts : public ForwardPass<T> {
 public:
  ForwardProducts(const EngineForward<T>& args, int threads, bool keeps_weights,
                  bool filled)
      : Base(args, kShapeOf<Cell>, threads, keeps_weights, filled) {}

 protected:
  using Base = ForwardPass<T>;
  using Cell = CellOf<VecMath<T>>;
  using Base::args_, Base::batch_, Base::batch_row_, Base::Bias, Base::cell_,
      Base::DropsX, Base::EffectiveH, Base::EffectiveHSets, Base::FactorWords,
      Base::H, Base::hidden_, Base::input_, Base::kL, Base::kRowBlock,
      Base::padded_, Base::ordinal_, Base::Packs, Base::PreviousH,
      Base::Projected, Base::rounded_x_, Base::RoundsX, Base::state_,
      Base::unprojected_h_, Base::weights_, Base::X, Base::ZParts;
  using typename Base::Rows;
  using typename Base::Units;
  using typename Base::V;
  static constexpr int kFirst = Cell::kFirstRecurrent;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;
  using InputSums = V[kRows][kInputs];
  using RecurrentSums = V[kRows][kRecurrent];

  ~ForwardProducts() = default;

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

  template <class F>
  void ForEachBlock(const Rows& range, const T* dropped_x, const F& f) {
    const int64_t words = FactorWords(input_);
    RowBlock block;
    for (int64_t b = range.begin; b < range.end; b += kRowBlock) {
      block.begin = b;
      block.rows = Min(range.end - b, kRowBlock);
      block.z =
          range.z ? range.z + (b - range.begin) * ZParts() * padded_ : nullptr;
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

  // A cell that reduces rows adds its biases itself.
  void LoadBias(int64_t u, V (&bias)[Cell::kPreActivations]) const {
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      bias[p] = Cell::kReducesRows ? V{} : Bias(p, u);
    }
  }

  T* Z(const RowTile& tile, int64_t r, int part) const {
    return tile.block.z + ((tile.first + r) * ZParts() + part) * padded_ +
           tile.u;
  }

  // sums = x W + bias.
  void MultiplyInput(const RowTile& tile, const V* bias,
                     InputSums& sums) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) sums[r][p] = bias[p];
    }
    if (!args_.weights.input) return AddInput(tile, sums);
    const FactorRows<T> x = {tile.block.x + tile.first, tile.rows,
                             FactorWords(input_)};
    const WeightColumns<T> w = {weights_.input(tile.u), input_,
                                weights_.format()};
    if (DropsX()) {
      MultiplyRows<kInputs, true>(x, w, sums);
    } else {
      MultiplyRows<kInputs>(x, w, sums);
    }
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
  void MultiplyRecurrent(const RowTile& tile, RecurrentSums& sums) const {
    if (!Packs()) return;  // the products are in z
    const FactorRows<T> h = {tile.block.h + tile.first, tile.rows,
                             batch_ * FactorWords(hidden_)};
    const WeightColumns<T> r = {weights_.recurrent(tile.u), hidden_,
                                weights_.format()};
    if (args_.recurrent_dropout.data) {
      MultiplyRows<kRecurrent, true>(h, r, sums);
    } else {
      MultiplyRows<kRecurrent>(h, r, sums);
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PRODUCTS_H_
