// Vectors of bfloat16, and pairs: how weights and the factors that are
// multiplied with them are stored for dot products (vec.h) and for tiles
// (tiles.h).
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PAIRS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PAIRS_H_

#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backends/cpu/simd/vector/quads.h"
#include "backends/cpu/simd/vector/vec.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/weights/weight_format.h"
#include "core/float16.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// LoadN and StoreN of bfloat16 without a loop.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline __mmask16 FirstLanes(int64_t n) {
  assert(n > 0);
  return n >= 16 ? 0xffff : static_cast<__mmask16>((1 << n) - 1);
}
TF_LSTM_OPS_INLINE VecT<float> LoadN(const BFloat16* from, int64_t n) {
  if (n <= 0) return VecT<float>{};
  const auto bits = _mm256_maskz_loadu_epi16(FirstLanes(n), from);
  return First(reinterpret_cast<VecT<BFloat16Pair>>(
      _mm512_maskz_cvtepu16_epi32(0xffff, bits)));
}
TF_LSTM_OPS_INLINE void StoreN(VecT<float> v, BFloat16* to, int64_t n) {
  _mm512_mask_cvtepi32_storeu_epi16(to, FirstLanes(n),
                                    reinterpret_cast<__m512i>(ToBFloat16(v)));
}
#endif

// Pairs in a row of a tile; see tiles.h. With tiles, rows of pairs have a
// multiple of so many words, with zeros at the end.
constexpr int kTilePairs = 16;
constexpr int64_t kWordBlock = kTiles ? kTilePairs : 1;

// The number of words that store a column of `elements` packed weights. A word
// has the size of an element in which the engine computes.
constexpr int64_t Words(int64_t elements, WeightFormat format) {
  if (IsQuads(format)) return QuadRows(elements);
  return format == WeightFormat::kBFloat16Pairs
             ? CeilDiv(elements, 2 * kWordBlock) * kWordBlock
             : elements;
}

constexpr WeightFormat FormatOf(bool bfloat16) {
  return bfloat16 ? WeightFormat::kBFloat16Pairs : WeightFormat::kElements;
}

// Whether the matrix that is multiplied with the weights, such as x, is rounded
// to the same format. Otherwise the weights are converted to float.
constexpr bool RoundsFactors(WeightFormat format) {
  return (kDotsPairs && format == WeightFormat::kBFloat16Pairs) ||
         IsQuads(format);
}

// Words of a row of `width` elements that is multiplied with packed weights.
constexpr int64_t FactorWords(int64_t width, WeightFormat format) {
  if (IsQuads(format)) return QuadFactorWords(width, format);
  return RoundsFactors(format) ? Words(width, format) : width;
}

// Pairs of the lanes of two vectors, rounded.
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> Pairs(VecT<float> first,
                                            VecT<float> second) {
  return ToBFloat16(first) | ToBFloat16(second) << 16;
}

// Pairs of neighbouring lanes of the concatenation of `a` and `b`.
template <int... k>
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> NeighbourPairs(
    VecT<float> a, VecT<float> b, std::integer_sequence<int, k...>) {
  return Pairs(Shuffle<float, 2 * k...>(a, b),
               Shuffle<float, 2 * k + 1 ...>(a, b));
}

// The first n elements of a row as pairs, at most 2 kLanes; the others are 0.
template <class E>
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> LoadPairs(const E* from, int64_t n) {
  constexpr int kL = kLanes<float>;
  return NeighbourPairs(LoadN(from, n), LoadN(from + kL, n - kL),
                        std::make_integer_sequence<int, kL>());
}

// One vector of columns as pairs of rows: 2 k and 2 k + 1 go to row k. A
// missing row counts as zero. `from` is a PackedFrom.
template <class From>
void PackPairs(const From& from, BFloat16Pair* packed, int64_t stride) {
  constexpr int kL = kLanes<BFloat16Pair>;
  const int64_t words = Words(from.depth, WeightFormat::kBFloat16Pairs);
  const auto row = [&](int64_t k) {
    return LoadN(from.data + k * from.row_stride,
                 k < from.depth ? from.width : 0);
  };
  for (int64_t k = 0; from.column_stride == 1 && k < words; ++k) {
    Store<BFloat16Pair>(Pairs(row(2 * k), row(2 * k + 1)), packed + k * stride);
  }
  for (int64_t k = 0; from.column_stride != 1 && k < words; k += kL) {
    VecT<BFloat16Pair> square[kL] = {};
    for (int64_t n = 0; n < from.width; ++n) {
      square[n] = LoadPairs(from.data + n * from.column_stride + 2 * k,
                            from.depth - 2 * k);
    }
    Transpose(square);
    for (int64_t r = 0; r < Min(kL, words - k); ++r) {
      Store<BFloat16Pair>(square[r], packed + (k + r) * stride);
    }
  }
}

// Stores a vector as elements u, u + 1, ... of a row of `size` elements,
// rounded to pairs. The last vector fills the row's last words with zeros: what
// lies there may be NaN, which times the zero of a missing weight is NaN.
TF_LSTM_OPS_INLINE void StorePairs(VecT<float> v, float* row, int64_t u,
                                   int64_t size) {
  auto* to = reinterpret_cast<BFloat16*>(row);
  const int64_t end = 2 * Words(size, WeightFormat::kBFloat16Pairs);
  StoreN(v, to + u, size - u);
  if (u + kLanes<float> < size || size == end) return;
  std::memset(to + size, 0, (end - size) * sizeof *to);
}

// Rounds a row to what is multiplied with packed weights.
inline void RoundFactor(const float* x, int64_t width, WeightFormat format,
                        float* to) {
  if (IsQuads(format)) return RoundToQuads(x, width, format, to);
  for (int64_t k = 0; k < width; k += kLanes<float>) {
    StorePairs(LoadN(x + k, width - k), to, k, width);
  }
}

// Panels of columns, as weight_grad.h describes them.
constexpr int kPanel = kTiles ? 1 : kRows;    // columns of a panel
constexpr int64_t kPanelColumns = 8 * kRows;  // that are copied at a time

// Columns [begin, end) of some rows of a matrix, of which the first becomes row
// k of the panels. A column has `stride` words.
struct RowsOfPanels {
  int64_t k, begin, end, count, stride;
};

// Copies a row of words to the panels. Its place in the first one is `at`.
template <class T>
void CopyRow(const T* row, const RowsOfPanels& of, T* at) {
  int64_t m = of.begin;
  at += m * of.stride;
  for (; m + kPanel <= of.end; m += kPanel, at += kPanel * of.stride) {
    std::memcpy(at, row + m - of.begin, kPanel * sizeof(T));
  }
  for (; m < of.end; ++m, ++at) *at = row[m - of.begin];
}

// Copies pairs(p), `count` rows of pairs of up to kLanes columns, to panels of
// one column, the first of which is at `to`: words from `word` on, within one
// block. The words behind the last one of a new block become zero.
template <class PairsOf>
TF_LSTM_OPS_INLINE void CopyToColumns(const PairsOf& pairs, int64_t word,
                                      int64_t count, int64_t columns,
                                      BFloat16Pair* to, int64_t stride) {
  constexpr int kL = kLanes<BFloat16Pair>;
  VecT<BFloat16Pair> square[kL] = {};
  for (int64_t p = 0; p < count; ++p) square[p] = pairs(p);
  Transpose(square);
  for (int64_t n = 0; n < columns; ++n, to += stride) {
    BFloat16Pair* at = to + word;
    if (word % kTilePairs == 0) std::memset(at, 0, kTilePairs * sizeof *at);
    std::memcpy(at, &square[n], count * sizeof *at);
  }
}

// Copies a row to the panels. load(r, m) is a vector of row r from column m on.
// If `rounds` is set, copies it as pairs, or several rows, and returns how
// many.
template <class T, class Load>
int64_t SetRows(const RowsOfPanels& of, const Load& load, bool, T* panels) {
  constexpr int kL = kLanes<T>;
  T words[kPanelColumns];
  for (int64_t m = of.begin; m < of.end; m += kL) {
    Store(load(0, m), words + m - of.begin);
  }
  CopyRow(words, of, panels + of.k * kPanel);
  return 1;
}
template <class Load>
int64_t SetRows(const RowsOfPanels& of, const Load& load, bool rounds,
                float* panels) {
  constexpr int kL = kLanes<float>;
  if (!kDotsPairs || !rounds) {
    return SetRows<float, Load>(of, load, false, panels);
  }
  const int64_t word = of.k / 2;
  const bool is_second = of.k % 2 != 0;  // row of a pair
  const auto pairs = [&](int64_t p, int64_t m) {
    const VecT<float> zero = {};
    if (is_second) return Pairs(zero, load(0, m));
    return Pairs(load(2 * p, m),
                 2 * p + 1 < of.count ? load(2 * p + 1, m) : zero);
  };
  if (kTiles && !is_second) {
    const int64_t count =
        Min(CeilDiv(of.count, 2), Min(kTilePairs - word % kTilePairs, kL));
    for (int64_t m = of.begin; m < of.end; m += kL) {
      CopyToColumns([&](int64_t p) { return pairs(p, m); }, word, count,
                    Min(kL, of.end - m),
                    reinterpret_cast<BFloat16Pair*>(panels + m * of.stride),
                    of.stride);
    }
    return Min(2 * count, of.count);
  }
  BFloat16Pair words[kPanelColumns];
  for (int64_t m = of.begin; m < of.end; m += kL) {
    Store<BFloat16Pair>(pairs(0, m), words + m - of.begin);
  }
  auto* at = reinterpret_cast<BFloat16Pair*>(panels) + word * kPanel;
  if (!is_second) {
    CopyRow(words, of, at);
    return Min(2, of.count);
  }
  for (int64_t m = of.begin; m < of.end; ++m) {
    at[(m - m % kPanel) * of.stride + m % kPanel].bits |=
        words[m - of.begin].bits;
  }
  return 1;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PAIRS_H_
