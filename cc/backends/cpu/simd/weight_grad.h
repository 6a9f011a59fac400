// WeightGrad: the gradient of one weight matrix, a product over packed rows.
//
// The gradient of the weights of a gate is F' D. F [K, M] has the factors: x,
// the previous h, or m. D [K, N] has the gradients of the results: dz of the
// gate, or dh. K counts packed rows. A chunk of packed rows at a time is added.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRAD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRAD_H_

#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/panels.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The factors of a chunk of packed rows.
template <class T>
struct WeightGradFactors {
  const T* panels;  // of F; with own panels, a set for each gate
  const T* rows;    // D: [rows, row_stride], gate p from column p * N on
  int64_t row_stride;
  int64_t count;  // of packed rows
};

template <class T>
class WeightGrad {
 public:
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBlock = kColumns * kL;  // columns of an item
  static constexpr int64_t kRowChunk = 64 * kRows;  // and its rows
  // Scratch memory of a call of Add or AddToSums, in elements.
  static constexpr int64_t kScratch = (kDepth + kRowChunk) * kBlock;

  struct Shape {
    int64_t rows;             // M: I, P or H
    int64_t columns;          // N: H or P
    int parts;                // gates
    GateOrder order;          // the block of each gate in the weights
    bool own_panels = false;  // with dropout each gate has its own factors
  };

  // The gradient `to`, not computed if that is null. A chunk has at most
  // `capacity` packed rows. `format` is that of both
  // factors.
  WeightGrad(const Shape& shape, const GateMatrices<T>& to, int64_t capacity,
             WeightFormat format)
      : shape_(shape),
        to_(to),
        panels_(capacity, shape.rows, format),
        format_(format) {}

  int Sets() const { return !to_ ? 0 : shape_.own_panels ? shape_.parts : 1; }
  int64_t PanelsSize() const { return Sets() * panels_.Size(); }
  const Panels<T>& panels() const { return panels_; }
  T* Set(T* panels, int set) const { return panels + set * panels_.Size(); }

  // Writes the product of a chunk to the gradient, or with `add` adds it. Items
  // are gates, blocks of columns, chunks of rows.
  int64_t Items() const {
    return to_ ? shape_.parts * Blocks(shape_.columns, kBlock) * RowChunks()
               : 0;
  }
  void Run(const WeightGradFactors<T>& of, bool add, int64_t item,
           T* scratch) const {
    const int64_t m = item % RowChunks() * kRowChunk;
    const int64_t m_end = Min(m + kRowChunk, shape_.rows);
    item /= RowChunks();
    const int64_t n = item % Blocks(shape_.columns, kBlock) * kBlock;
    const int part = static_cast<int>(item / Blocks(shape_.columns, kBlock));
    const int64_t columns = Min(kBlock, shape_.columns - n);
    T* to = to_.Block(shape_.order.block[part]) + m * to_.row_stride +
            n * to_.column_stride;
    const T* panels =
        of.panels + (shape_.own_panels ? part : 0) * panels_.Size();
    const Columns from = {of.rows + part * shape_.columns + n, of.row_stride,
                          of.count, columns};
    if (to_.column_stride == 1) {
      return Multiply(panels, m, m_end, from, add, scratch, to, to_.row_stride);
    }
    T* tile = scratch + kDepth * kBlock;
    Multiply(panels, m, m_end, from, false, scratch, tile, kBlock);
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < m_end - m; ++row) {
        T* at = to + row * to_.row_stride + column * to_.column_stride;
        const T sum = tile[row * kBlock + column];
        *at = add ? *at + sum : sum;
      }
    }
  }

  // Partial sums, of a part of the batch: [M, parts, N].
  int64_t SumsSize() const { return to_ ? shape_.rows * SumsStride() : 0; }
  void AddToSums(const WeightGradFactors<T>& of, bool add, T* scratch,
                 T* sums) const {
    if (!to_) return;
    const int sets = Sets();
    const int64_t width = SumsStride() / sets;
    for (int64_t begin = 0; begin < sets * width; begin += width) {
      const T* panels = of.panels + begin / width * panels_.Size();
      for (int64_t n = 0; n < width; n += kBlock) {
        const Columns from = {of.rows + begin + n, of.row_stride, of.count,
                              Min(kBlock, width - n)};
        Multiply(panels, 0, shape_.rows, from, add, scratch, sums + begin + n,
                 SumsStride());
      }
    }
  }

  // Writes the gradient: the total of `count` partial sums, `distance` apart.
  // An item is a row.
  int64_t TotalItems() const { return to_ ? shape_.rows : 0; }
  void WriteTotal(const T* sums, int64_t distance, int64_t count,
                  int64_t row) const {
    for (int part = 0; part < shape_.parts; ++part) {
      T* to = to_.Block(shape_.order.block[part]) + row * to_.row_stride;
      for (int64_t n = 0; n < shape_.columns; n += kL) {
        const T* from = sums + row * SumsStride() + part * shape_.columns + n;
        const int64_t width = shape_.columns - n;
        VecT<T> total = LoadN(from, width);
        for (int64_t k = 1; k < count; ++k) {
          total = total + LoadN(from + k * distance, width);
        }
        Scatter(total, to + n * to_.column_stride, width);
      }
    }
  }

 private:
  // Rows of D farther apart are packed, since each is on another page.
  static constexpr int64_t kMaxStride = 600;

  // Columns of D, at most kBlock.
  struct Columns {
    const T* rows;
    int64_t row_stride, count, columns;
  };

  int64_t RowChunks() const { return Blocks(shape_.rows, kRowChunk); }
  int64_t SumsStride() const { return shape_.parts * shape_.columns; }

  // Rows [m, m_end) of the product. D is read where it is; pairs are packed.
  void Multiply(const T* panels, int64_t m, int64_t m_end, const Columns& from,
                bool add, T* packed, T* to, int64_t to_stride) const {
    int64_t k = 0;
    do {  // once even without packed rows, to write zeros
      const int64_t depth = Min(kDepth, from.count - k);
      const T* b = from.rows + k * from.row_stride;
      int64_t b_stride = from.row_stride;
      if (RoundsFactors(format_) || from.row_stride > kMaxStride) {
        PackBlock(PackedFrom{b, b_stride, 1, depth, from.columns}, 0,
                  from.columns, packed, format_);
        b = packed;
        b_stride = RoundUpToLanes<T>(from.columns);
      }
      WithConstant<kColumns>(Blocks(from.columns, kL), [&](auto vectors) {
        MultiplyBlock<decltype(vectors)::value, kRows>(
            [&](int64_t row) { return panels_.Column(panels, row, k); },
            WeightColumns<T>{b, depth, format_, b_stride},
            {m, m_end, from.columns, add || k > 0},
            [&](int64_t row) { return to + (row - m) * to_stride; });
      });
      k += depth;
    } while (k < from.count);
  }

  void Scatter(VecT<T> v, T* to, int64_t width) const {
    if (to_.column_stride == 1) return StoreN(v, to, width);
    T lanes[kL];
    Store(v, lanes);
    for (int64_t k = 0; k < Min(width, kL); ++k) {
      to[k * to_.column_stride] = lanes[k];
    }
  }

  const Shape shape_;
  const GateMatrices<T> to_;
  const Panels<T> panels_;
  const WeightFormat format_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRAD_H_
