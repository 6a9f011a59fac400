// WeightGrad: the gradient of one weight matrix, a product over packed rows.
//
// The gradient of the weights of a gate is F^T D. F [K, M] has the factors: x,
// the previous h, or m. D [K, N] has the gradients of the results: dz of the
// gate, or dh. K counts packed rows; a chunk of them is added at a time.
//
// F is copied to panels of kPanel columns, [K, kPanel] each. As pairs of
// bfloat16, a pair holds two neighbouring rows.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_WEIGHT_GRAD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_WEIGHT_GRAD_H_

#include <cstring>

#include "backends/cpu/simd/vector/gemm.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The factors of `count` packed rows.
template <class T>
struct WeightGradFactors {
  const T* panels;  // of F; with own panels, a set for each gate
  const T* rows;    // D: [count, row_stride], gate p from column p * N on
  int64_t row_stride;
  int64_t count;
  bool add;  // to the result, instead of overwriting it
};

// Packed rows [begin, end). Row `begin` is row `first` of the panels.
struct PanelRows {
  int64_t begin, end, first;
};

template <class T>
struct WeightGrad {
  static constexpr int kL = kLanes<T>;
  // Scratch memory of a call of Run or AddToSums, in elements.
  static constexpr int64_t kScratch =
      (kDepth + kProductRows) * kProductColumns<T>;

  GateMatrices<T> to;          // the gradient; null: not computed
  int64_t rows = 0;            // M: I, P or H
  int64_t columns = 0;         // N: H or P
  int parts = 1;               // gates
  const int* block = nullptr;  // of each gate in the weights
  // Dropout multipliers of F, [blocks, B, M], or null. With them each gate has
  // its own panels.
  const T* keep = nullptr;
  int64_t capacity = 0;  // the largest number of packed rows of a chunk
  WeightFormat format = WeightFormat::kElements;  // of both factors

  int sets() const { return !to ? 0 : keep ? parts : 1; }
  int64_t PanelsSize() const { return sets() * SetSize(); }

  // Copies some columns of F to the panels. With pairs, row 2 k of the panels
  // must be set before row 2 k + 1. row_of(at) is the row of a packed row.
  int64_t PanelItems() const { return sets() * CeilDiv(rows, kPanelColumns); }
  template <class RowOf>
  void Gather(const PackedSequence& valid, const PanelRows& of, int64_t item,
              const RowOf& row_of, T* panels) const {
    const int64_t set = item / CeilDiv(rows, kPanelColumns);
    const int64_t begin = item % CeilDiv(rows, kPanelColumns) * kPanelColumns;
    const int64_t end = Min(begin + kPanelColumns, rows);
    panels += set * SetSize();
    const PackedRow first = valid.At(of.begin);
    // The rows of a step of a full batch are equally far apart.
    const bool even = valid.is_full() && of.end - of.begin > 1;
    const T* from = row_of(first);
    const int64_t distance = even ? row_of(valid.Behind(first, 1)) - from : 0;
    const auto row = [&](int64_t r) {
      return even ? from + r * distance : row_of(valid.Behind(first, r));
    };
    const auto kept = [&](int64_t r) {
      return keep +
             (block[set] * valid.batch + valid.Behind(first, r).batch) * rows;
    };
    const auto load = [&](int64_t r, int64_t m) {
      const VecT<T> v = LoadN(row(r) + m, end - m);
      return keep ? v * LoadN(kept(r) + m, end - m) : v;
    };
    for (int64_t r = 0; r < of.end - of.begin;) {
      const int64_t k = of.first + r;
      const RowsOfPanels rest = {k, begin, end, of.end - of.begin - r,
                                 PanelWords()};
      if (!keep && !RoundsFactors(format)) {
        CopyRow(row(r++) + begin, rest, panels + k * kPanel);
      } else {
        r += SetRows(
            rest, [&](int64_t n, int64_t m) { return load(r + n, m); },
            RoundsFactors(format), panels);
      }
    }
  }

  // Writes the product of a chunk to the gradient, or adds it. Items are
  // products, groups of columns, bands of rows. A product is that of a gate, or
  // of all gates where each has at most one vector of columns: a product with
  // one vector has fewer sums than hide the latency of multiply-adds.
  int64_t Items() const {
    return to ? products() * Groups() * CeilDiv(rows, kProductRows) : 0;
  }
  void Run(const WeightGradFactors<T>& of, int64_t item, T* scratch) const {
    const int64_t m = item % CeilDiv(rows, kProductRows) * kProductRows;
    item /= CeilDiv(rows, kProductRows);
    const int64_t index = item / Groups();
    const int64_t n = item % Groups() * kProductColumns<T>;
    const ProductRange range = {
        m, Min(m + kProductRows, rows),
        Min(kProductColumns<T>, parts * columns / products() - n)};
    const int64_t first = index * columns + n;
    WeightGradFactors<T> some = of;
    some.panels += (keep ? index : 0) * SetSize();
    some.rows += first;
    if (to.column_stride == 1 && range.columns <= columns) {
      return Multiply(some, range, scratch, At(m, first), to.row_stride);
    }
    T* product = scratch + kDepth * kProductColumns<T>;
    if (to.column_stride != 1) {
      some.add = false;
      Multiply(some, range, scratch, product, kProductColumns<T>);
      return StoreColumns(product, range, first, of.add);
    }
    const auto copy = [](T* sums, T* grad, int64_t width) {
      for (int64_t u = 0; u < width; u += kL) {
        StoreN(LoadN(grad + u, width - u), sums + u, width - u);
      }
    };
    if (of.add) ForEachGate(product, range, first, copy);
    Multiply(some, range, scratch, product, kProductColumns<T>);
    ForEachGate(product, range, first, [&](T* sums, T* grad, int64_t width) {
      copy(grad, sums, width);
    });
  }

  // The same for partial sums of a part of the batch, [M, gates, N]. Gates that
  // share panels are one product.
  int64_t SumsSize() const { return to ? rows * SumsStride() : 0; }
  void AddToSums(const WeightGradFactors<T>& of, T* scratch, T* sums) const {
    const int64_t width = to ? SumsStride() / sets() : 0;
    for (int set = 0; set < sets(); ++set) {
      for (int64_t n = 0; n < width; n += kProductColumns<T>) {
        WeightGradFactors<T> some = of;
        some.panels += set * SetSize();
        some.rows += set * width + n;
        Multiply(some, {0, rows, Min(kProductColumns<T>, width - n)}, scratch,
                 sums + set * width + n, SumsStride());
      }
    }
  }

  // Writes a row of the gradient: the total of `count` partial sums, `distance`
  // apart.
  int64_t TotalItems() const { return to ? rows : 0; }
  void WriteTotal(const T* sums, int64_t distance, int64_t count,
                  int64_t row) const {
    sums += row * SumsStride();
    for (int part = 0; part < parts; ++part, sums += columns) {
      T* at = to.Block(block[part]) + row * to.row_stride;
      for (int64_t n = 0; n < columns; n += kL) {
        const int64_t width = columns - n;
        VecT<T> total = LoadN(sums + n, width);
        for (int64_t k = 1; k < count; ++k) {
          total = total + LoadN(sums + n + k * distance, width);
        }
        if (to.column_stride == 1) {
          StoreN(total, at + n, width);
        } else {
          for (int64_t k = 0; k < Min(width, kL); ++k) {
            at[(n + k) * to.column_stride] = total[k];
          }
        }
      }
    }
  }

 private:
  // Rows of D farther apart, in elements, are packed: each is on another page.
  static constexpr int64_t kMaxStride = 600;

  int products() const { return !keep && columns <= kL ? 1 : parts; }
  int64_t Groups() const {
    return CeilDiv(parts * columns / products(), kProductColumns<T>);
  }
  // The gradient of row m, column n of all gates.
  T* At(int64_t m, int64_t n) const {
    return to.Block(block[n / columns]) + m * to.row_stride +
           n % columns * to.column_stride;
  }

  // Calls use(sums, grad, width) for the columns of each gate in each row of a
  // product, columns from `first` on, and for their place in the gradient.
  template <class F>
  void ForEachGate(T* product, const ProductRange& range, int64_t first,
                   const F& use) const {
    for (int64_t n = 0, width = 0; n < range.columns; n += width) {
      width = Min(range.columns - n, columns - (first + n) % columns);
      for (int64_t m = range.begin; m < range.end; ++m) {
        use(product + (m - range.begin) * kProductColumns<T> + n,
            At(m, first + n), width);
      }
    }
  }
  // Writes or adds a product to the gradient, of columns from `first` on.
  // The rows of a gate are contiguous.
  void StoreColumns(const T* product, const ProductRange& range, int64_t first,
                    bool add) const {
    for (int64_t n = 0; n < range.columns; ++n) {
      T* at = At(range.begin, first + n);
      for (int64_t m = 0; m < range.end - range.begin; ++m) {
        T* element = at + m * to.row_stride;
        const T sum = product[m * kProductColumns<T> + n];
        *element = add ? *element + sum : sum;
      }
    }
  }

  int64_t SumsStride() const { return parts * columns; }
  // With tiles, columns that are a power of two apart would share few sets of
  // the cache.
  int64_t PanelWords() const {
    return Words(capacity, format) + (kTiles ? kWordBlock : 0);
  }
  int64_t SetSize() const {
    return CeilDiv(rows, kPanel) * kPanel * PanelWords();
  }

  // Rows and columns of the product, at `at`. D is read where it is; pairs, and
  // rows far apart, are packed.
  void Multiply(const WeightGradFactors<T>& of, ProductRange product, T* packed,
                T* at, int64_t stride) const {
    int64_t k = 0;
    do {  // once even without packed rows, to write zeros
      WeightColumns<T> d = {of.rows + k * of.row_stride,
                            Min(kDepth, of.count - k), format, of.row_stride};
      if (RoundsFactors(format) || of.row_stride > kMaxStride) {
        PackGroup(
            PackedFrom{d.data, of.row_stride, 1, d.depth, product.columns}, 0,
            product.columns, packed, format);
        d.data = packed;
        d.stride = RoundUpToLanes<T>(product.columns);
      }
      product.add = of.add || k > 0;
      WithConstant<kColumns>(CeilDiv(product.columns, kL), [&](auto vectors) {
        MultiplyBand<decltype(vectors)::value, kPanel>(
            [&](int64_t m) {
              return of.panels + (m - m % kPanel) * PanelWords() +
                     Words(k, format) * kPanel + m % kPanel;
            },
            d, product,
            [&](int64_t m) { return at + (m - product.begin) * stride; });
      });
      k += d.depth;
    } while (k < of.count);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_WEIGHT_GRAD_H_
