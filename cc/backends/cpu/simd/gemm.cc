#include "backends/cpu/simd/gemm.h"

#include <utility>

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// Calls f(row, rows, column, columns), of type integral_constant<int, .>, for
// each tile of a kernel's result, R rows times C vectors.
template <int R, int C, bool kOwnA, int kRow = 0, int kColumn = 0, class F>
TF_LSTM_OPS_INLINE void ForEachTile(const F& f) {
  constexpr RegisterTile kTile = TileOf(R, C, kOwnA);
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

// Calls f(k, column) for k in [begin, end). column(c) is vector c of row k of
// B, where `at` is vector 0 of row `begin`.
template <class A, class B, class F>
TF_LSTM_OPS_INLINE void ForEachRow(const B* at, int64_t stride, int64_t begin,
                                   int64_t end, const F& f) {
  constexpr int kL = kLanes<A>;
  int64_t k = begin;
  if constexpr (std::is_same_v<A, B>) {
    for (; k < end; ++k, at += stride) {
      f(k, [at](int c) TF_LSTM_OPS_LAMBDA { return Load(at + c * kL); });
    }
  } else {
    const auto first = [&at](int c) TF_LSTM_OPS_LAMBDA {
      return First(Load(at + c * kL));
    };
    for (; k + 1 < end; k += 2, at += stride) {
      f(k, first);
      f(k + 1,
        [at](int c) TF_LSTM_OPS_LAMBDA { return Second(Load(at + c * kL)); });
    }
    if (k < end) f(k, first);
  }
}

// The chains are outside of the tiles: the second tile of a chain reads its
// weights from the L1 cache.
template <class A, class B, int R, int C, bool kOwnA, int kAStride>
void Accumulate(const A* const* a, int64_t a_stride, const B* b,
                int64_t b_stride, int64_t depth, VecT<SumOf<A>> (*acc)[C]) {
  constexpr int64_t kElements = std::is_same_v<A, B> ? 1 : 2;  // a word of B
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = Min(begin + kChain, depth);
    const B* chain = b + begin / kElements * b_stride;
    ForEachTile<R, C, kOwnA>([=](auto first_row, auto rows, auto first_column,
                                 auto columns) TF_LSTM_OPS_LAMBDA {
      constexpr int kTileRows = decltype(rows)::value;
      constexpr int kTileColumns = decltype(columns)::value;
      constexpr int kColumn = decltype(first_column)::value;
      const A* row[kTileRows];
      for (int r = 0; r < kTileRows; ++r) row[r] = a[first_row + r];
      VecT<SumOf<A>> sum[kTileRows][kTileColumns] = {};
      const auto add = [&](int64_t k, const auto& load) TF_LSTM_OPS_LAMBDA {
        if constexpr (TileOf(R, C, kOwnA).keeps_rows) {
          VecT<A> value[kTileRows];
          for (int r = 0; r < kTileRows; ++r)
            value[r] = Broadcast(row[r][k * kAStride]);
          for (int c = 0; c < kTileColumns; ++c) {
            const VecT<A> column = load(c);
            for (int r = 0; r < kTileRows; ++r)
              sum[r][c] = Fma(value[r], column, sum[r][c]);
          }
        } else {
          VecT<A> column[kTileColumns];
          for (int c = 0; c < kTileColumns; ++c) {
            column[c] = load(c);
            if (kTileRows > 1) KeepInRegister(&column[c]);
          }
          for (int r = 0; r < kTileRows; ++r) {
            VecT<A> value = Broadcast(row[r][k * kAStride]);
            for (int c = 0; c < kTileColumns; ++c) {
              if (kOwnA && kColumn + c > 0) {
                value = Broadcast(row[r][(kColumn + c) * a_stride + k]);
              }
              sum[r][c] = Fma(value, column[c], sum[r][c]);
            }
          }
        }
      };
      ForEachRow<A>(chain + kColumn * kLanes<A>, b_stride, begin, end, add);
      for (int r = 0; r < kTileRows; ++r) {
        for (int c = 0; c < kTileColumns; ++c) {
          VecT<SumOf<A>>* to = &acc[first_row + r][kColumn + c];
          *to = *to + sum[r][c];
        }
      }
    });
  }
}

}  // namespace

template <class A, class B, int C, bool kOwnA, int kAStride>
const typename Products<A, B, C, kOwnA, kAStride>::Function
    Products<A, B, C, kOwnA, kAStride>::kByRows[kRows] = {
        &Accumulate<A, B, 1, C, kOwnA, kAStride>,
        &Accumulate<A, B, 2, C, kOwnA, kAStride>,
        &Accumulate<A, B, 3, C, kOwnA, kAStride>,
        &Accumulate<A, B, 4, C, kOwnA, kAStride>,
        &Accumulate<A, B, 5, C, kOwnA, kAStride>,
        &Accumulate<A, B, 6, C, kOwnA, kAStride>};

TF_LSTM_OPS_KERNELS();

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
