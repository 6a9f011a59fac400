// Matrix products: weights packed into columns of one vector, and a kernel that
// keeps up to kRows x 4 vectors of the result in registers.
//
// Every element of a product is a sum of chains of kChain fused multiply-adds,
// over k in ascending order. It therefore depends on neither the number of
// threads nor the other rows and columns, and its rounding error grows with the
// root of kChain rather than of k.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_

#include <type_traits>

#include "backends/cpu/simd/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

constexpr int kColumns = 4;  // vectors of columns that a kernel handles
constexpr int64_t kChain = 128;
constexpr int64_t kDepth = 256;  // rows of B that are packed at a time

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

// `width` columns of B, at most one vector, as vectors `packed_stride` apart:
// element (k, n) goes to packed[k * packed_stride + n]; missing columns become
// zero. b(k, n) is b[k * row_stride + n * column_stride].
template <class T>
void PackVector(const T* b, int64_t row_stride, int64_t column_stride,
                int64_t depth, int64_t width, T* packed,
                int64_t packed_stride) {
  constexpr int kL = kLanes<T>;
  constexpr int64_t kTile = 16;  // of rows, where columns are contiguous
  if (column_stride == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      Store(LoadN(b + k * row_stride, width), packed + k * packed_stride);
    }
    return;
  }
  if (width < kL) {
    for (int64_t k = 0; k < depth; ++k)
      Store(VecT<T>{}, packed + k * packed_stride);
  }
  for (int64_t begin = 0; begin < depth; begin += kTile) {
    const int64_t end = depth - begin < kTile ? depth : begin + kTile;
    for (int64_t n = 0; n < width; ++n) {
      for (int64_t k = begin; k < end; ++k) {
        packed[k * packed_stride + n] = b[k * row_stride + n * column_stride];
      }
    }
  }
}

// Columns [begin, end) of B in C vectors: [depth, C, lanes].
template <class T>
void PackBlock(const T* b, int64_t row_stride, int64_t column_stride,
               int64_t depth, int64_t begin, int64_t end, T* packed) {
  constexpr int kL = kLanes<T>;
  const int64_t stride = RoundUpToLanes<T>(end - begin);
  for (int64_t n = begin; n < end; n += kL) {
    PackVector(b + n * column_stride, row_stride, column_stride, depth,
               end - n < kL ? end - n : kL, packed + n - begin, stride);
  }
}

// acc[r][c] += a(r, :) b(:, c). Element k of row r of A is at a[r] + k *
// kAStride, `depth` of them; b is [depth, C, lanes]. With kOwnA each vector of
// columns has its own A, at a[r] + c * a_stride. From `next` on a vector for
// each k is fetched into the cache. Not inlined: alone, its sums stay in
// registers.
template <class T, int R, int C, bool kOwnA = false, int kAStride = 1>
__attribute__((noinline)) void Accumulate(const T* const (&a)[R],
                                          int64_t a_stride, const T* b,
                                          int64_t depth, const T* next,
                                          VecT<T> (&acc)[R][C]) {
  constexpr int kL = kLanes<T>;
  const T* row[R];
  for (int r = 0; r < R; ++r) row[r] = a[r];
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = depth - begin < kChain ? depth : begin + kChain;
    VecT<T> sum[R][C] = {};
    for (int64_t k = begin; k < end; ++k) {
      VecT<T> column[C];
      for (int c = 0; c < C; ++c) column[c] = Load(b + (k * C + c) * kL);
      PrefetchToL2(next + k * kL);
      for (int r = 0; r < R; ++r) {
        VecT<T> value = Broadcast(row[r][k * kAStride]);
        for (int c = 0; c < C; ++c) {
          if (kOwnA && c > 0) value = Broadcast(row[r][c * a_stride + k]);
          sum[r][c] = Fma(value, column[c], sum[r][c]);
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) acc[r][c] = acc[r][c] + sum[r][c];
    }
  }
}

// sums[r] += a(r, :) b for K rows of B where they lie, `b_stride` apart, of so
// many vectors of columns. The factors stay in registers while a row passes.
constexpr int kOuterRows = kRows / 2;  // of A at most
constexpr int kOuterDepth = 8;

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

// Where row block `block` of a product with `packed` looks ahead: after as many
// blocks as there are columns, all of what follows it is in the cache.
template <int C, class T>
const T* LookAhead(const T* packed, int64_t depth, int64_t block) {
  return packed + (C + block % C) * depth * kLanes<T>;
}

// Rows [begin, end) of the product of A with `depth` rows of B, packed, of
// `columns` columns in C vectors: written to C, or added to it where `add`.
// a_of(m) and c_of(m) say where the rows are.
template <class T, int C, int kAStride = 1, class AOf, class COf>
void MultiplyBlock(const AOf& a_of, const T* packed, int64_t depth,
                   int64_t begin, int64_t end, int64_t columns, bool add,
                   const COf& c_of) {
  constexpr int kL = kLanes<T>;
  for (int64_t m = begin; m < end; m += kRows) {
    WithConstant<kRows>(end - m, [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      const T* row[R];
      VecT<T> acc[R][C] = {};
      for (int r = 0; r < R; ++r) row[r] = a_of(m + r);
      Accumulate<T, R, C, false, kAStride>(
          row, 0, packed, depth,
          LookAhead<C>(packed, depth, (m - begin) / kRows), acc);
      for (int r = 0; r < R; ++r) {
        T* to = c_of(m + r);
        for (int v = 0; v < C; ++v) {
          const int64_t width = columns - v * kL;
          const VecT<T> sum =
              add ? LoadN(to + v * kL, width) + acc[r][v] : acc[r][v];
          StoreN(sum, to + v * kL, width);
        }
      }
    });
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
