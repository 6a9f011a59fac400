// TransposedProduct: the product of dz with the transposed weights of gates.
// With the input weights it is dx, with the recurrent weights dh_prev.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_

#include "backends/cpu/simd/gemm.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class TransposedProduct {
 public:
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBlock = kColumns * kL;

  struct Shape {
    int64_t width;     // columns of the product: I or P
    int64_t cell;      // H
    int first, parts;  // pre-activations
    GateOrder order;
  };

  // Rows [begin, end) of dz and of the product.
  struct Rows {
    int64_t begin = 0, end = 0;
    // Row `begin` of dz: [pre-activations, H], or as pairs half of that.
    // The next row is `stride` elements behind.
    const T* z_grad = nullptr;
    int64_t stride = 0;
    const int64_t* batch_row = nullptr;  // of each row
    const int64_t* target = nullptr;  // its row of `to`; null: the row itself
    T* to = nullptr;                  // [., width]
    int64_t to_stride = 0;
    const T* keep = nullptr;  // multipliers, [gates, B, width], or null
    int64_t batch = 0;        // B
    bool adds = false;        // to `to`, instead of overwriting it
  };

  // Packs blocks of `block` columns, a multiple of kL and at most kBlock.
  TransposedProduct(const Shape& shape, const GateMatrices<const T>& weights,
                    int64_t block, WeightFormat format)
      : shape_(shape),
        weights_(weights),
        block_(block),
        words_(Words(shape.cell, format)),
        format_(format) {}

  int64_t PackedSize() const {
    return shape_.parts * RoundUpToLanes<T>(shape_.width) * words_;
  }

  // Packs the block of columns from `begin` on: [gates, H, vectors of columns,
  // lanes]; as pairs, half as many rows.
  void Pack(int64_t begin, T* packed) const {
    const int64_t end = Min(begin + block_, shape_.width);
    if (begin >= end) return;
    const int64_t row = RoundUpToLanes<T>(end - begin);
    T* to = packed + begin * shape_.parts * words_;
    for (int p = 0; p < shape_.parts; ++p, to += words_ * row) {
      const int block = shape_.order.block[shape_.first + p];
      weights_.Read(block, [&](const auto* data) {
        PackBlock(PackedFrom{data, weights_.column_stride, weights_.row_stride,
                             shape_.cell, shape_.width},
                  begin, end, to, format_);
      });
    }
  }

  // to[target] = sum over the gates of keep * (dz W'), for the block of columns
  // from `begin` on. The sum accumulates in place, kDepth rows of the weights
  // at a time, so that these stay in the cache for all rows. Without dropout
  // the gates are one product, since their dz and weights are contiguous.
  void Multiply(const Rows& rows, const T* packed, int64_t begin) const {
    const int sets = rows.keep ? shape_.parts : 1;
    const int64_t depth = words_ * shape_.parts / sets;
    const int64_t end = Min(begin + block_, shape_.width);
    if (begin >= end) return;
    const T* weights = packed + begin * shape_.parts * words_;
    WithConstant<kColumns>(Blocks(end - begin, kL), [&](auto columns) {
      constexpr int C = decltype(columns)::value;
      for (int g = 0; g < sets; ++g) {
        const int part = shape_.first + g;
        for (int64_t k = 0; k < depth; k += kDepth) {
          const Terms terms = {weights, part, part * words_ + k,
                               Min(kDepth, depth - k),
                               rows.adds || g > 0 || k > 0};
          for (int64_t e = rows.begin; e < rows.end; e += kRows) {
            MultiplyRowsOf<C>(rows, terms, e, begin);
          }
          weights += terms.depth * C * kL;
        }
      }
    });
  }

 private:
  // A piece of the sum: words [at, at + depth) of a row of dz.
  struct Terms {
    const T* weights;
    int part;
    int64_t at, depth;
    bool adds;
  };

  // Packed rows [e, e + kRows) or fewer.
  template <int C>
  void MultiplyRowsOf(const Rows& of, const Terms& terms, int64_t e,
                      int64_t n) const {
    const int64_t count = Min(of.end - e, kRows);
    const T* row = of.z_grad + (e - of.begin) * of.stride + terms.at;
    VecT<T> sum[kRows][C] = {};
    const T* a[kRows] = {};
    T* to[kRows] = {};
    for (int64_t r = 0; r < count; ++r) {
      a[r] = row + r * of.stride;
      to[r] = of.to + (of.target ? of.target[e + r] : e + r) * of.to_stride + n;
      PrefetchRow<C>(to[r]);
    }
    const int64_t depth =
        RoundsFactors(format_) ? 2 * terms.depth : terms.depth;
    MultiplyRows<C>(FactorRows<T>{a, count},
                    WeightColumns<T>{terms.weights, depth, format_}, sum);
    for (int64_t r = 0; r < count; ++r) {
      const T* keep = of.keep;
      if (keep) {
        keep +=
            (shape_.order.block[terms.part] * of.batch + of.batch_row[e + r]) *
                shape_.width +
            n;
      }
      for (int c = 0; c < C; ++c) {
        const int64_t width = shape_.width - n - c * kL;
        if (keep) sum[r][c] = sum[r][c] * LoadN(keep + c * kL, width);
        const VecT<T> old =
            terms.adds ? LoadN(to[r] + c * kL, width) : VecT<T>{};
        StoreN(old + sum[r][c], to[r] + c * kL, width);
      }
    }
  }

  const Shape shape_;
  const GateMatrices<const T>& weights_;
  const int64_t block_;
  const int64_t words_;  // of a gate in a row of dz
  const WeightFormat format_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_
