// Matrix products: weights packed into columns of one vector, and a kernel that
// keeps up to kRows x 4 vectors of the result in registers.
//
// Every element of a product is one chain of fused multiply-adds over k in
// ascending order, cut at multiples of kDepth in Gemm. It therefore depends on
// neither the number of threads nor the other rows and columns.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_

#include <type_traits>

#include "backends/cpu/simd/vec.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

constexpr int kColumns = 4;       // vectors of columns that a kernel handles
constexpr int64_t kDepth = 256;   // rows of B that Gemm packs at a time

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
      for (int64_t n = 0; n < width; ++n) to[n] = from[n * column_stride];
      for (int64_t n = width; n < kL; ++n) to[n] = 0;
    }
  }
}

// acc[r][c] += a(r, :) b(:, c): row r of A at a[r], `depth` long; vector c of
// packed columns at b + c * b_stride. With kOwnA each vector of columns has its
// own A, at a[r] + c * a_stride.
template <class T, int R, int C, bool kOwnA = false>
TF_LSTM_OPS_INLINE void Accumulate(const T* const (&a)[R], int64_t a_stride,
                                   const T* b, int64_t b_stride, int64_t depth,
                                   VecT<T> (&acc)[R][C]) {
  for (int64_t k = 0; k < depth; ++k) {
    VecT<T> column[C];
    for (int c = 0; c < C; ++c) {
      column[c] = Load(b + c * b_stride + k * kLanes<T>);
    }
    for (int r = 0; r < R; ++r) {
      VecT<T> value = Broadcast(a[r][k]);
      for (int c = 0; c < C; ++c) {
        if (kOwnA && c > 0) value = Broadcast(a[r][c * a_stride + k]);
        acc[r][c] = Fma(value, column[c], acc[r][c]);
      }
    }
  }
}

// C = A B, or C += A B where `accumulate`; with `scale`, each product is
// multiplied elementwise before that.
template <class T>
struct GemmArgs {
  int64_t rows, columns, depth;
  const T* a;  // [rows, depth], a_stride from row to row
  int64_t a_stride;
  const T* b;  // (k, n) at k * b_row_stride + n * b_column_stride
  int64_t b_row_stride, b_column_stride;
  T* c;  // row m at c_rows[m] * c_stride, m * c_stride where c_rows is null
  int64_t c_stride;
  const int64_t* c_rows = nullptr;
  const T* scale = nullptr;  // row m at scale_rows[m] * columns
  const int64_t* scale_rows = nullptr;
  bool accumulate = false;
};

// Rows [begin, end) of the block of C that `packed`, the columns from n0 on and
// the depth from k0 on, contributes.
template <class T, int C>
void GemmBlock(const GemmArgs<T>& g, int64_t begin, int64_t end, int64_t n0,
               int64_t k0, int64_t depth, const T* packed) {
  constexpr int kL = kLanes<T>;
  const bool add = g.accumulate || k0 > 0;
  for (int64_t m = begin; m < end; m += kRows) {
    WithConstant<kRows>(end - m, [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      const T* a[R];
      VecT<T> acc[R][C] = {};
      for (int r = 0; r < R; ++r) a[r] = g.a + (m + r) * g.a_stride + k0;
      Accumulate<T, R, C>(a, 0, packed, depth * kL, depth, acc);
      for (int r = 0; r < R; ++r) {
        T* row = g.c + (g.c_rows ? g.c_rows[m + r] : m + r) * g.c_stride;
        const T* scale =
            g.scale ? g.scale + g.scale_rows[m + r] * g.columns : nullptr;
        for (int c = 0; c < C; ++c) {
          const int64_t n = n0 + c * kL;
          const int64_t width = g.columns - n;
          VecT<T> value = acc[r][c];
          if (scale) value = value * LoadN(scale + n, width);
          if (add) value = value + LoadN(row + n, width);
          StoreN(value, row + n, width);
        }
      }
    });
  }
}

// One member's share of a product: a range of columns, or of rows where there
// are too few columns. `scratch` has room for GemmScratch<T>() elements.
template <class T>
constexpr int64_t GemmScratch() {
  return kDepth * kColumns * kLanes<T>;
}

template <class T>
void Gemm(const GemmArgs<T>& g, const Member& member, T* scratch) {
  constexpr int kL = kLanes<T>;
  const bool by_columns = g.columns >= 4 * kL * member.count();
  const auto whole = [](int64_t n) { return Member::Range{0, n}; };
  const Member::Range columns =
      by_columns ? member.Share(g.columns, kL) : whole(g.columns);
  const Member::Range rows =
      by_columns ? whole(g.rows) : member.Share(g.rows, kRows);
  if (rows.begin == rows.end) return;
  for (int64_t n = columns.begin; n < columns.end; n += kColumns * kL) {
    int64_t k = 0;
    do {  // once even where depth is 0, to write zeros
      const int64_t depth = g.depth - k < kDepth ? g.depth - k : kDepth;
      const T* b = g.b + k * g.b_row_stride + n * g.b_column_stride;
      const int64_t end =
          columns.end - n < kColumns * kL ? columns.end - n : kColumns * kL;
      PackColumns(b, g.b_row_stride, g.b_column_stride, depth, 0, end, scratch);
      WithConstant<kColumns>((end + kL - 1) / kL, [&](auto vectors) {
        GemmBlock<T, decltype(vectors)::value>(g, rows.begin, rows.end, n, k,
                                               depth, scratch);
      });
      k += depth;
    } while (k < g.depth);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_GEMM_H_
