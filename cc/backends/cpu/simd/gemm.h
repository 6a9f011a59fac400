// Matrix products: weights packed into columns of one vector, and kernels that
// compute up to kRows x kColumns vectors of the result.
//
// Every element of a product is a sum of chains of kChain fused multiply-adds,
// over k in ascending order. It therefore depends on neither the number of
// threads nor the other rows and columns, and its rounding error grows with the
// root of kChain rather than of k.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_

#include <type_traits>

#include "backends/cpu/simd/pack.h"
#include "backends/cpu/simd/tile.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

constexpr int64_t kDepth = 256;  // rows of B that are packed at a time

constexpr int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t Max(int64_t a, int64_t b) { return a < b ? b : a; }
constexpr int64_t Blocks(int64_t n, int64_t block) {
  return (n + block - 1) / block;
}

template <class T>
constexpr int64_t RoundUpToLanes(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// Calls f(integral_constant<int, n>) for n = value, 1 <= value <= N.
template <int N, class F>
TF_LSTM_OPS_INLINE void WithConstant(int64_t value, F&& f) {
  if constexpr (N > 1) {
    if (value < N) return WithConstant<N - 1>(value, f);
  }
  f(std::integral_constant<int, N>{});
}

// The type in which products of factors of type E are summed.
template <class E>
using SumOf = std::conditional_t<std::is_same_v<E, BFloat16Pair>, float, E>;

// Cache lines to prefetch: the first one, and the bytes from one to the next.
struct Lines {
  const char* at = nullptr;
  int64_t stride = 0;

  TF_LSTM_OPS_INLINE void Fetch() {
    PrefetchToL2(at);
    at += stride;
  }
};

// The kernels of all products, by the number of rows: of[R - 1] takes R rows.
template <class Function>
struct Kernels {
  Function of[kRows];
};

// acc[r][c] += a(r, :) b(:, c). Element k of row r of A is at a[r] + k *
// kAStride, `depth` of them; b is [depth, C, lanes], its rows `b_stride` apart.
// With kOwnA each vector of columns has its own A, at a[r] + c * a_stride. For
// each k one line of `next` is prefetched, except with few rows, which need the
// whole bandwidth of the cache.
template <class E, int C, bool kOwnA, int kAStride>
struct Products {
  using Function = void (*)(const E* const* a, int64_t a_stride, const E* b,
                            int64_t b_stride, int64_t depth, Lines next,
                            VecT<SumOf<E>> (*acc)[C]);
  static const Kernels<Function> kByRows;
};

// The same for float rows and pairs, which are widened: b is [depth / 2, C,
// lanes]. The bits are those of the same values in float.
template <int C, bool kOwnA>
struct WidenedProducts {
  using Function = void (*)(const float* const* a, int64_t a_stride,
                            const BFloat16Pair* b, int64_t depth, Lines next,
                            VecT<float> (*acc)[C]);
  static const Kernels<Function> kByRows;
};

// The kernels do not depend on the cell. gemm.cc compiles them, once.
// NOLINTBEGIN(bugprone-macro-parentheses): `specifier` is none or extern.
#define TF_LSTM_OPS_PRODUCTS(specifier, E)                \
  specifier template struct Products<E, 1, false, 1>;     \
  specifier template struct Products<E, 2, false, 1>;     \
  specifier template struct Products<E, 3, false, 1>;     \
  specifier template struct Products<E, 4, false, 1>;     \
  specifier template struct Products<E, 3, true, 1>;      \
  specifier template struct Products<E, 4, true, 1>;      \
  specifier template struct Products<E, 1, false, kRows>; \
  specifier template struct Products<E, 2, false, kRows>; \
  specifier template struct Products<E, 3, false, kRows>; \
  specifier template struct Products<E, 4, false, kRows>
#define TF_LSTM_OPS_WIDENED_PRODUCTS(specifier)        \
  specifier template struct WidenedProducts<1, false>; \
  specifier template struct WidenedProducts<2, false>; \
  specifier template struct WidenedProducts<3, false>; \
  specifier template struct WidenedProducts<4, false>; \
  specifier template struct WidenedProducts<3, true>;  \
  specifier template struct WidenedProducts<4, true>
#if defined(TF_LSTM_OPS_DOTS_BFLOAT16)
#define TF_LSTM_OPS_KERNELS(specifier)    \
  TF_LSTM_OPS_PRODUCTS(specifier, float); \
  TF_LSTM_OPS_PRODUCTS(specifier, BFloat16Pair)
#else
#define TF_LSTM_OPS_KERNELS(specifier)     \
  TF_LSTM_OPS_PRODUCTS(specifier, float);  \
  TF_LSTM_OPS_PRODUCTS(specifier, double); \
  TF_LSTM_OPS_WIDENED_PRODUCTS(specifier)
#endif
// NOLINTEND(bugprone-macro-parentheses)
TF_LSTM_OPS_KERNELS(extern);

// The part of the next weights that row block `block` of a product prefetches:
// one of their C vectors, so after C blocks all of them are in the cache.
// Packed weights are contiguous: the next ones lie behind the current ones, or
// before them if `downwards`. For other weights `lines` gives the next ones'
// first vectors.
struct Ahead {
  int64_t block;
  bool downwards = false;
  Lines lines = {};

  template <int C, class E>
  Lines Of(const E* packed, int64_t depth) const {
    constexpr int64_t kBytes = sizeof(VecT<E>);
    const int64_t vector = block % C;
    if (lines.at) return {lines.at + vector * kBytes, lines.stride};
    const int64_t vectors = ((downwards ? -C : C) + vector) * depth;
    return {reinterpret_cast<const char*>(packed + vectors * kLanes<E>),
            kBytes};
  }
};

// Rounds the first `width` lanes of a vector, at most all, to pairs. If their
// number is odd, the last pair's other element is zero: the next lane may hold
// NaN, which times the zero of a missing weight is NaN. Not inlined: only alone
// do compilers make vectors of its loop each time.
__attribute__((noinline)) inline void StorePairs(VecT<float> v,
                                                 BFloat16Pair* to,
                                                 int64_t width) {
  constexpr int kL = kLanes<float>;
  float lanes[kL];
  uint32_t pairs[kL / 2];
  Store(v, lanes);
  for (int k = 0; k < kL / 2; ++k) {
    pairs[k] = ToBFloat16(lanes[2 * k]) | ToBFloat16(lanes[2 * k + 1]) << 16;
  }
  const int64_t words =
      Words(width < kL ? width : kL, WeightFormat::kBFloat16Pairs);
  if (width < kL && width % 2 != 0) pairs[width / 2] &= 0xffff;
  for (int64_t k = 0; k < words; ++k) to[k].bits = pairs[k];
}

// `rows` rows, at most kRows, times packed weights of `depth` inputs, added to
// acc. With kOwnA each gate has its own rows. If RoundsFactors(format), the
// rows have this format too, and their stride counts words.
template <int C, bool kOwnA = false, int kAStride = 1, class T>
void MultiplyRows(int64_t rows, const T* const* a, int64_t a_stride,
                  const T* packed, int64_t depth, Ahead ahead,
                  WeightFormat format, VecT<T> (*acc)[C],
                  int64_t b_stride = C * kLanes<T>) {
  constexpr bool kOwn = kOwnA && C > 1;  // one vector of columns has one A
  if constexpr (std::is_same_v<T, float> && (kDotsPairs || kAStride == 1)) {
    if (format == WeightFormat::kBFloat16Pairs) {
      const auto* b = reinterpret_cast<const BFloat16Pair*>(packed);
      const int64_t words = Words(depth, format);
      const Lines next = ahead.Of<C>(b, words);
      if constexpr (kDotsPairs) {
        const auto* const* rows_of_pairs =
            reinterpret_cast<const BFloat16Pair* const*>(a);
        return Products<BFloat16Pair, C, kOwn, kAStride>::kByRows.of[rows - 1](
            rows_of_pairs, a_stride, b, b_stride, words, next, acc);
      } else {
        return WidenedProducts<C, kOwn>::kByRows.of[rows - 1](a, a_stride, b,
                                                              depth, next, acc);
      }
    }
  }
  Products<T, C, kOwn, kAStride>::kByRows.of[rows - 1](
      a, a_stride, packed, b_stride, depth, ahead.Of<C>(packed, depth), acc);
}

// The same, with `own_a` in place of kOwnA.
template <int C, class T>
void MultiplyRows(bool own_a, int64_t rows, const T* const* a, int64_t a_stride,
                  const T* packed, int64_t depth, Ahead ahead,
                  WeightFormat format, VecT<T> (*acc)[C]) {
  if (own_a) {
    MultiplyRows<C, true>(rows, a, a_stride, packed, depth, ahead, format, acc);
  } else {
    MultiplyRows<C>(rows, a, a_stride, packed, depth, ahead, format, acc);
  }
}

// sums[r] += a(r, :) b for K rows of B where they lie, `b_stride` apart, of so
// many vectors of columns. The factors stay in registers while a row passes:
// those of R <= kRows rows of A and K = OuterDepth(R) of B.
constexpr int OuterDepth(int rows) {
  int depth = 8;
  while (rows * (depth + 1) + 1 > kRegisters) depth /= 2;
  return depth;
}

template <class T, int R, int K>
__attribute__((noinline)) void AddOuter(const T* const (&a)[R], const T* b,
                                        int64_t b_stride, int64_t vectors,
                                        T* const (&sums)[R]) {
  VecT<T> factor[R][K];
  T* to[R];
  for (int r = 0; r < R; ++r) {
    to[r] = sums[r];
    for (int k = 0; k < K; ++k) factor[r][k] = Broadcast(a[r][k]);
  }
  for (int64_t v = 0; v < vectors; ++v, b += kLanes<T>) {
    VecT<T> sum[R];
    for (int r = 0; r < R; ++r) sum[r] = Load(to[r] + v * kLanes<T>);
    for (int k = 0; k < K; ++k) {
      const VecT<T> row = Load(b + k * b_stride);
      for (int r = 0; r < R; ++r) sum[r] = Fma(factor[r][k], row, sum[r]);
    }
    for (int r = 0; r < R; ++r) Store(sum[r], to[r] + v * kLanes<T>);
  }
}

// C vectors that are written once a product is done: fetched meanwhile.
template <int C, class T>
TF_LSTM_OPS_INLINE void PrefetchRow(const T* row) {
  for (int c = 0; c < C; ++c) PrefetchToWrite(row + c * kLanes<T>);
}

// Rows [begin, end) of the product of A with `depth` rows of B, packed or
// `b_stride` apart, of `columns` columns in C vectors: written to C, or added
// to it where `add`. a_of(m) and c_of(m) say where the rows are; for `format`
// see MultiplyRows, for `next` see Ahead.
template <int C, int kAStride = 1, class T, class AOf, class COf>
void MultiplyBlock(const AOf& a_of, const T* b, int64_t depth, int64_t begin,
                   int64_t end, int64_t columns, bool add, WeightFormat format,
                   const COf& c_of, int64_t b_stride = C * kLanes<T>,
                   Lines next = {}) {
  constexpr int kL = kLanes<T>;
  for (int64_t m = begin; m < end; m += kRows) {
    const int64_t rows = end - m < kRows ? end - m : kRows;
    const T* row[kRows] = {};
    VecT<T> acc[kRows][C] = {};
    for (int64_t r = 0; r < rows; ++r) {
      row[r] = a_of(m + r);
      PrefetchRow<C>(c_of(m + r));
    }
    MultiplyRows<C, false, kAStride>(rows, row, 0, b, depth,
                                     {(m - begin) / kRows, false, next}, format,
                                     acc, b_stride);
    for (int64_t r = 0; r < rows; ++r) {
      T* to = c_of(m + r);
      for (int v = 0; v < C; ++v) {
        const int64_t width = columns - v * kL;
        const VecT<T> sum =
            add ? LoadN(to + v * kL, width) + acc[r][v] : acc[r][v];
        StoreN(sum, to + v * kL, width);
      }
    }
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
