// Panels: the rows of a matrix as the transposed first factor of a product.
//
// A weight gradient is the product of a transposed matrix, such as x, with dz.
// A panel holds kRows columns of the matrix, [rows, kRows], in the order in
// which a kernel reads them. Packed as pairs of bfloat16, a pair holds two
// neighbouring rows.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_PANELS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_PANELS_H_

#include <cstring>

#include "backends/cpu/simd/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class Panels {
 public:
  // Panels for at most `rows` rows of `width` elements.
  Panels(int64_t rows, int64_t width, WeightFormat format)
      : words_(Words(rows, format)), width_(width), format_(format) {}

  // Size of the memory, in elements.
  int64_t Size() const { return Blocks(width_, kRows) * kRows * words_; }

  // Sets elements [begin, end) of a row; begin is a multiple of kRows. `keep`
  // has a multiplier for each element of the row, or is null. With pairs, row
  // 2 k must be set before row 2 k + 1.
  void SetRow(T* panels, int64_t row, const T* values, const T* keep,
              int64_t begin, int64_t end) const {
    if (!keep && !RoundsFactors(format_))
      return CopyRow(panels, row, values, begin, end);
    for (int64_t k = begin; k < end; ++k) {
      Set(panels + (k - k % kRows) * words_, row, k % kRows,
          keep ? values[k] * keep[k] : values[k]);
    }
  }

  // The product's first factor: column m of the matrix from row k on, whose
  // elements are kRows apart. With pairs, k is even.
  const T* Column(const T* panels, int64_t m, int64_t k) const {
    const int64_t r = m % kRows;
    return panels + (m - r) * words_ + Words(k, format_) * kRows + r;
  }

 private:
  void CopyRow(T* panels, int64_t row, const T* values, int64_t begin,
               int64_t end) const {
    T* to = panels + begin * words_ + row * kRows;
    int64_t k = begin;
    for (; k + kRows <= end; k += kRows, to += kRows * words_) {
      std::memcpy(to, values + k, kRows * sizeof(T));
    }
    for (; k < end; ++k, ++to) *to = values[k];
  }

  void Set(T* panel, int64_t row, int64_t r, T value) const {
    if constexpr (kDotsPairs && std::is_same_v<T, float>) {
      if (RoundsFactors(format_)) {
        auto* words = reinterpret_cast<BFloat16Pair*>(panel);
        uint32_t* pair = &words[row / 2 * kRows + r].bits;
        const uint32_t bits = ToBFloat16(value);
        *pair = row % 2 == 0 ? bits : *pair | bits << 16;
        return;
      }
    }
    panel[row * kRows + r] = value;
  }

  int64_t words_, width_;
  WeightFormat format_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PANELS_H_
