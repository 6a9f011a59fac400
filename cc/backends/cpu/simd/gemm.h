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

// B's columns [begin, end), `begin` a multiple of the lanes, into vectors of
// columns: element (k, n) goes to packed[(n / lanes * depth + k) * lanes + n %
// lanes]; missing columns become zero. b(k, n) is b[k * row_stride + n *
// column_stride].
template <class T>
void PackColumns(const T* b, int64_t row_stride, int64_t column_stride,
                 int64_t depth, int64_t begin, int64_t end, T* packed) {
  constexpr int kL = kLanes<T>;
  for (int64_t n0 = begin; n0 < end; n0 += kL) {
    T* to = packed + n0 * depth;
    const int64_t width = end - n0 < kL ? end - n0 : kL;
    for (int64_t k = 0; k < depth; ++k, to += kL) {
      const T* from = b + k * row_stride + n0 * column_stride;
      if (column_stride == 1) {
        Store(LoadN(from, width), to);
        continue;
      }
      for (int64_t n = 0; n < width; ++n) to[n] = from[n * column_stride];
      for (int64_t n = width; n < kL; ++n) to[n] = 0;
    }
  }
}

// acc[r][c] += a(r, :) b(:, c): row r of A at a[r], `depth` long; vector c of
// packed columns at b + c * b_stride. With kOwnA each vector of columns has its
// own A, at a[r] + c * a_stride. Not inlined: alone, its sums stay in
// registers.
template <class T, int R, int C, bool kOwnA = false>
__attribute__((noinline)) void Accumulate(const T* const (&a)[R],
                                          int64_t a_stride, const T* b,
                                          int64_t b_stride, int64_t depth,
                                          VecT<T> (&acc)[R][C]) {
  const T* row[R];
  for (int r = 0; r < R; ++r) row[r] = a[r];
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = depth - begin < kChain ? depth : begin + kChain;
    VecT<T> sum[R][C] = {};
    for (int64_t k = begin; k < end; ++k) {
      VecT<T> column[C];
      for (int c = 0; c < C; ++c) {
        column[c] = Load(b + c * b_stride + k * kLanes<T>);
      }
      for (int r = 0; r < R; ++r) {
        VecT<T> value = Broadcast(row[r][k]);
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

// Rows [begin, end) of the product of A with `depth` rows of B, packed, of
// `columns` columns in C vectors: written to c, or added to it where `add`. Row
// m of A is at a + m * a_stride, of c at c + m * c_stride.
template <class T, int C>
void MultiplyBlock(const T* a, int64_t a_stride, const T* packed, int64_t depth,
                   int64_t begin, int64_t end, int64_t columns, bool add, T* c,
                   int64_t c_stride) {
  constexpr int kL = kLanes<T>;
  for (int64_t m = begin; m < end; m += kRows) {
    WithConstant<kRows>(end - m, [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      const T* row[R];
      VecT<T> acc[R][C] = {};
      for (int r = 0; r < R; ++r) row[r] = a + (m + r) * a_stride;
      Accumulate<T, R, C>(row, 0, packed, depth * kL, depth, acc);
      for (int r = 0; r < R; ++r) {
        for (int v = 0; v < C; ++v) {
          const int64_t width = columns - v * kL;
          T* to = c + (m + r) * c_stride + v * kL;
          const VecT<T> sum = add ? LoadN(to, width) + acc[r][v] : acc[r][v];
          StoreN(sum, to, width);
        }
      }
    });
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
