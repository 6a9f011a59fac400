#include "backends/cpu/simd/gemm.h"

#include <utility>

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

using Rows = std::make_integer_sequence<int, kRows>;

// Calls f(row, rows, column, columns), of type integral_constant<int, .>, for
// each tile of a kernel's result, R rows times C vectors.
template <int R, int C, bool kOwnA, int kRow = 0, int kColumn = 0, class F>
TF_LSTM_OPS_INLINE void ForEachTile(const F& f) {
  constexpr Tile kTile = TileOf(R, C, kOwnA);
  constexpr int kTileRows = kTile.rows < R - kRow ? kTile.rows : R - kRow;
  f(std::integral_constant<int, kRow>(),
    std::integral_constant<int, kTileRows>(),
    std::integral_constant<int, kColumn>(),
    std::integral_constant<int, kTile.columns>());
  if constexpr (kColumn + kTile.columns < C) {
    ForEachTile<R, C, kOwnA, kRow, kColumn + kTile.columns>(f);
  } else if constexpr (kRow + kTileRows < R) {
    ForEachTile<R, C, kOwnA, kRow + kTileRows, 0>(f);
  }
}

template <class E, int R, int C, bool kOwnA, int kAStride>
void Accumulate(const E* const* a, int64_t a_stride, const E* b,
                int64_t b_stride, int64_t depth, Lines next,
                VecT<SumOf<E>> (*acc)[C]) {
  ForEachTile<R, C, kOwnA>([=](auto first_row, auto rows, auto first_column,
                               auto columns) __attribute__((always_inline)) {
    constexpr int kL = kLanes<E>;
    constexpr int kTileRows = decltype(rows)::value;
    constexpr int kTileColumns = decltype(columns)::value;
    constexpr int kColumn = decltype(first_column)::value;
    constexpr bool kFetches = TileOf(R, C, kOwnA).prefetches && kColumn == 0;
    const E* row[kTileRows];
    for (int r = 0; r < kTileRows; ++r) row[r] = a[first_row + r];
    const E* weights = b + kColumn * kL;
    Lines lines = next;
    for (int64_t begin = 0; begin < depth; begin += kChain) {
      const int64_t end = depth - begin < kChain ? depth : begin + kChain;
      VecT<SumOf<E>> sum[kTileRows][kTileColumns] = {};
      for (int64_t k = begin; k < end; ++k, weights += b_stride) {
        if (kFetches) lines.Fetch();
        if constexpr (TileOf(R, C, kOwnA).keeps_rows) {
          VecT<E> value[kTileRows];
          for (int r = 0; r < kTileRows; ++r)
            value[r] = Broadcast(row[r][k * kAStride]);
          for (int c = 0; c < kTileColumns; ++c) {
            const VecT<E> column = Load(weights + c * kL);
            for (int r = 0; r < kTileRows; ++r)
              sum[r][c] = Fma(value[r], column, sum[r][c]);
          }
          continue;
        }
        VecT<E> column[kTileColumns];
        for (int c = 0; c < kTileColumns; ++c) {
          column[c] = Load(weights + c * kL);
          if (kTileRows > 1) KeepInRegister(&column[c]);
        }
        for (int r = 0; r < kTileRows; ++r) {
          VecT<E> value = Broadcast(row[r][k * kAStride]);
          for (int c = 0; c < kTileColumns; ++c) {
            if (kOwnA && kColumn + c > 0) {
              value = Broadcast(row[r][(kColumn + c) * a_stride + k]);
            }
            sum[r][c] = Fma(value, column[c], sum[r][c]);
          }
        }
      }
      for (int r = 0; r < kTileRows; ++r) {
        for (int c = 0; c < kTileColumns; ++c) {
          VecT<SumOf<E>>* to = &acc[first_row + r][kColumn + c];
          *to = *to + sum[r][c];
        }
      }
    }
  });
}

template <class E, int C, bool kOwnA, int kAStride, int... r>
constexpr auto MakeKernels(Products<E, C, kOwnA, kAStride>,
                           std::integer_sequence<int, r...>) {
  using Function = typename Products<E, C, kOwnA, kAStride>::Function;
  return Kernels<Function>{{&Accumulate<E, r + 1, C, kOwnA, kAStride>...}};
}

template <int R, int C, bool kOwnA>
__attribute__((noinline)) void AccumulateWidened(const float* const* a,
                                                 int64_t a_stride,
                                                 const BFloat16Pair* b,
                                                 int64_t depth, Lines next,
                                                 VecT<float> (*acc)[C]) {
  ForEachTile<R, C, kOwnA>([=](auto first_row, auto rows, auto first_column,
                               auto columns) __attribute__((always_inline)) {
    constexpr int kL = kLanes<float>;
    constexpr int kTileRows = decltype(rows)::value;
    constexpr int kTileColumns = decltype(columns)::value;
    constexpr int kColumn = decltype(first_column)::value;
    constexpr bool kFetches = TileOf(R, C, kOwnA).prefetches && kColumn == 0;
    const float* row[kTileRows];
    for (int r = 0; r < kTileRows; ++r) row[r] = a[first_row + r];
    Lines lines = next;
    for (int64_t begin = 0; begin < depth; begin += kChain) {
      const int64_t end = depth - begin < kChain ? depth : begin + kChain;
      VecT<float> sum[kTileRows][kTileColumns] = {};
      const auto add = [&](int64_t k,
                           auto widen) __attribute__((always_inline)) {
        VecT<float> column[kTileColumns];
        for (int c = 0; c < kTileColumns; ++c) {
          column[c] = widen(Load(b + (k / 2 * C + kColumn + c) * kL));
        }
        for (int r = 0; r < kTileRows; ++r) {
          VecT<float> value = Broadcast(row[r][k]);
          for (int c = 0; c < kTileColumns; ++c) {
            if (kOwnA && kColumn + c > 0) {
              value = Broadcast(row[r][(kColumn + c) * a_stride + k]);
            }
            sum[r][c] = Fma(value, column[c], sum[r][c]);
          }
        }
      };
      int64_t k = begin;
      for (; k + 1 < end; k += 2) {
        if (kFetches) lines.Fetch();
        add(k, [](auto pairs) { return First(pairs); });
        add(k + 1, [](auto pairs) { return Second(pairs); });
      }
      if (k < end) add(k, [](auto pairs) { return First(pairs); });
      for (int r = 0; r < kTileRows; ++r) {
        for (int c = 0; c < kTileColumns; ++c) {
          VecT<float>* to = &acc[first_row + r][kColumn + c];
          *to = *to + sum[r][c];
        }
      }
    }
  });
}

template <int C, bool kOwnA, int... r>
constexpr auto MakeKernels(WidenedProducts<C, kOwnA>,
                           std::integer_sequence<int, r...>) {
  using Function = typename WidenedProducts<C, kOwnA>::Function;
  return Kernels<Function>{{&AccumulateWidened<r + 1, C, kOwnA>...}};
}

}  // namespace

template <class E, int C, bool kOwnA, int kAStride>
const Kernels<typename Products<E, C, kOwnA, kAStride>::Function>
    Products<E, C, kOwnA, kAStride>::kByRows =
        MakeKernels(Products<E, C, kOwnA, kAStride>(), Rows());

template <int C, bool kOwnA>
const Kernels<typename WidenedProducts<C, kOwnA>::Function>
    WidenedProducts<C, kOwnA>::kByRows =
        MakeKernels(WidenedProducts<C, kOwnA>(), Rows());

TF_LSTM_OPS_KERNELS();

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
