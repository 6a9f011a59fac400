// The kernels of products of int8.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUAD_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUAD_PRODUCTS_H_

#include "backends/cpu/simd/vector/quads.h"
#include "backends/cpu/simd/vector/register_tile.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// B: packed quads of `depth` rows and C vectors of columns. Each further group
// of C vectors begins `distance` words behind.
struct QuadColumns {
  const float* data;
  int64_t depth;
  int64_t distance;
};

// Rows of quads that the register tiles of a kernel read shortly after each
// other.
constexpr int64_t kQuadChain = 128;

// sums[r][g][c] += a(r, :) b(:, g, c) for R rows of A and kGroups groups of C
// vectors of columns.
template <int R, int kGroups, int C, bool kFused>
void AccumulateQuads(const float* const* a, const QuadColumns& b,
                     VecT<float>* sums) {
  constexpr int kN = kGroups * C;
  constexpr int64_t kWords = WordsOfQuad(kFused);
  const auto column = [&](int n, int64_t row) TF_LSTM_OPS_LAMBDA {
    return b.data + n / C * b.distance + (row * C + n % C) * kLanes<float>;
  };
  VecT<int32_t> totals[R][kN];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < kN; ++n) {
      totals[r][n] = reinterpret_cast<VecT<int32_t>>(Load(column(n, 1)));
    }
  }
  const int64_t rows = QuadRows(b.depth);
  for (int64_t begin = kHeadRows; begin < rows; begin += kQuadChain) {
    const int64_t end = Min(begin + kQuadChain, rows);
    const auto add = [&](auto first_row, auto tile_rows, auto first,
                         auto columns) TF_LSTM_OPS_LAMBDA {
      constexpr int kTileR = decltype(tile_rows)::value;
      constexpr int kTileN = decltype(columns)::value;
      const float* row[kTileR];
      VecT<int32_t> sum[kTileR][kTileN];
      for (int r = 0; r < kTileR; ++r) {
        row[r] = a[first_row + r] + 1 - kHeadRows * kWords;
        for (int n = 0; n < kTileN; ++n) {
          sum[r][n] = totals[first_row + r][first + n];
        }
      }
      for (int64_t k = begin; k < end; ++k) {
        for (int w = 0; w < kWords; ++w) {
          VecT<int32_t> weights[kTileN];
          for (int n = 0; n < kTileN; ++n) {
            weights[n] = LoadQuads<kFused>(column(first + n, k), w);
            if (kTileR > 1) KeepInRegister(&weights[n]);
          }
          for (int r = 0; r < kTileR; ++r) {
            const VecT<int32_t> value = BroadcastWord(row[r] + k * kWords + w);
            for (int n = 0; n < kTileN; ++n) {
              sum[r][n] = Dot<kFused>(sum[r][n], value, weights[n]);
            }
          }
        }
      }
      for (int r = 0; r < kTileR; ++r) {
        for (int n = 0; n < kTileN; ++n) {
          totals[first_row + r][first + n] = sum[r][n];
        }
      }
    };
    ForEachRegisterTile<R, kN, false>(add);
  }
  for (int r = 0; r < R; ++r) {
    const VecT<float> scale = Broadcast(*a[r]);
    for (int n = 0; n < kN; ++n, ++sums) {
      const auto total = __builtin_convertvector(totals[r][n], VecT<float>);
      // In this order, so that a sum of 0 stays 0 whatever the scales are.
      *sums = *sums + total * Load(column(n, 0)) * scale;
    }
  }
}

template <int C, bool kFused>
constexpr decltype(&AccumulateQuads<1, 1, C, kFused>) kQuadKernels[] = {
    &AccumulateQuads<1, 1, C, kFused>, &AccumulateQuads<2, 1, C, kFused>,
    &AccumulateQuads<3, 1, C, kFused>, &AccumulateQuads<4, 1, C, kFused>,
    &AccumulateQuads<5, 1, C, kFused>, &AccumulateQuads<6, 1, C, kFused>};
static_assert(kRows == 6, "kQuadKernels has a kernel for each number of rows");

// sums += A B for up to kRows rows of A.
template <int C>
void MultiplyQuads(const float* const* a, int64_t rows, const QuadColumns& b,
                   WeightFormat format, VecT<float> (*sums)[C]) {
  if constexpr (kHasFusedDots) {
    if (format == WeightFormat::kInt8FusedQuads) {
      return kQuadKernels<C, true>[rows - 1](a, b, *sums);
    }
  }
  kQuadKernels<C, false>[rows - 1](a, b, *sums);
}

// The same for one row of A and kGroups groups of columns.
template <int kGroups, int C>
TF_LSTM_OPS_NOINLINE void MultiplyQuadsOfRow(const float* a,
                                             const QuadColumns& b,
                                             WeightFormat format,
                                             VecT<float>* sums) {
  if constexpr (kHasFusedDots) {
    if (format == WeightFormat::kInt8FusedQuads) {
      return AccumulateQuads<1, kGroups, C, true>(&a, b, sums);
    }
  }
  AccumulateQuads<1, kGroups, C, false>(&a, b, sums);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUAD_PRODUCTS_H_
