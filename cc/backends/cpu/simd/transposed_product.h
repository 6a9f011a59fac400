// TransposedProduct: the product of dz with the transposed weights of gates.
// With the input weights it is dx, with the recurrent weights dh_prev.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Rows [begin, end) of dz and of a product. Row `begin` of dz is at `z_grad`,
// [pre-activations, H], or as pairs half of that; the next row is `z_stride`
// elements behind.
template <class T>
struct TransposedRows {
  int64_t begin, end;
  const T* z_grad;
  int64_t z_stride;
  T* to = nullptr;  // [., width]
  int64_t to_stride = 0;
  const int64_t* target =
      nullptr;  // of each row, its row of `to`; null: the row itself
};

template <class T>
struct TransposedProduct {
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kProductColumns = kColumns * kL;

  const EngineBackward<T>& args;
  const GateMatrices<const T>& weights;
  // Dropout multipliers of the product, [blocks, B, width], or null.
  const T* keep;
  int64_t width;     // columns of the product: I or P
  int first, parts;  // pre-activations
  int64_t
      columns;  // of a packed block, a multiple of kL, at most kProductColumns
  WeightFormat format;

  int64_t cell() const { return args.config.cell_size; }
  int Block(int part) const { return args.config.gate_order.block[part]; }
  // Words of a gate in a row of dz.
  int64_t Words() const { return TF_LSTM_OPS_SIMD::Words(cell(), format); }
  int64_t PackedSize() const {
    return parts * RoundUpToLanes<T>(width) * Words();
  }

  // Packs the block of columns from `begin` on: [gates, H, vectors of columns,
  // lanes]; as pairs, half as many rows.
  void Pack(int64_t begin, T* packed) const {
    const int64_t end = Min(begin + columns, width);
    if (begin >= end) return;
    T* to = packed + begin * parts * Words();
    for (int p = first; p < first + parts; ++p) {
      weights.Read(Block(p), [&](const auto* data) {
        PackBlock(PackedFrom{data, weights.column_stride, weights.row_stride,
                             cell(), width},
                  begin, end, to, format);
      });
      to += Words() * RoundUpToLanes<T>(end - begin);
    }
  }

  // to[target] = sum over the gates of keep * (dz W^T), for the block of
  // columns from `begin` on. The sum accumulates in place, kDepth rows of the
  // weights at a time, so that these stay in the cache for all rows. Without
  // dropout the gates are one product, since their dz and weights are
  // contiguous.
  void Multiply(const TransposedRows<T>& rows, const T* packed,
                int64_t begin) const {
    const int sets = keep ? parts : 1;
    const int64_t depth = Words() * parts / sets;
    const int64_t end = Min(begin + columns, width);
    if (begin >= end) return;
    const T* from = packed + begin * parts * Words();
    WithConstant<kColumns>(CeilDiv(end - begin, kL), [&](auto vectors) {
      constexpr int C = decltype(vectors)::value;
      for (int g = 0; g < sets; ++g) {
        for (int64_t k = 0; k < depth; k += kDepth) {
          const Piece piece = {from, first + g, (first + g) * Words() + k,
                               Min(kDepth, depth - k), g > 0 || k > 0};
          for (int64_t e = rows.begin; e < rows.end; e += kRows) {
            MultiplyRowsOf<C>(rows, piece, e, begin);
          }
          from += piece.depth * C * kL;
        }
      }
    });
  }

 private:
  // A piece of the sum: words [at, at + depth) of a row of dz.
  struct Piece {
    const T* weights;
    int part;
    int64_t at, depth;
    bool adds;
  };

  // Rows [e, e + kRows) or fewer.
  template <int C>
  void MultiplyRowsOf(const TransposedRows<T>& of, const Piece& piece,
                      int64_t e, int64_t n) const {
    const int64_t count = Min(of.end - e, kRows);
    const T* row = of.z_grad + (e - of.begin) * of.z_stride + piece.at;
    VecT<T> sum[kRows][C] = {};
    const T* a[kRows] = {};
    T* to[kRows] = {};
    for (int64_t r = 0; r < count; ++r) {
      a[r] = row + r * of.z_stride;
      to[r] = of.to + (of.target ? of.target[e + r] : e + r) * of.to_stride + n;
      PrefetchRow<C>(to[r]);
    }
    const int64_t depth = RoundsFactors(format) ? 2 * piece.depth : piece.depth;
    MultiplyRows<C>(FactorRows<T>{a, count},
                    WeightColumns<T>{piece.weights, depth, format}, sum);
    for (int64_t r = 0; r < count; ++r) {
      const T* kept = keep;
      if (kept) {
        const PackedSequence& packed = *args.packed;
        const int64_t set = Block(piece.part) * packed.batch;
        kept += (set + packed.batch_row[e + r]) * width + n;
      }
      for (int c = 0; c < C; ++c) {
        const int64_t left = width - n - c * kL;
        if (kept) sum[r][c] = sum[r][c] * LoadN(kept + c * kL, left);
        const VecT<T> old =
            piece.adds ? LoadN(to[r] + c * kL, left) : VecT<T>{};
        StoreN(old + sum[r][c], to[r] + c * kL, left);
      }
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_TRANSPOSED_PRODUCT_H_
