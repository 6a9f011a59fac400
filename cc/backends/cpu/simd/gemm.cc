#include "backends/cpu/simd/gemm.h"

#include <utility>

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

using Rows = std::make_integer_sequence<int, kRows>;

constexpr bool FetchesAhead(int rows) { return 2 * rows > kRows; }

template <class E, int R, int C, bool kOwnA, int kAStride>
void Accumulate(const E* const* a, int64_t a_stride, const E* b,
                int64_t b_stride, int64_t depth, Lines next,
                VecT<SumOf<E>> (*acc)[C]) {
  constexpr int kL = kLanes<E>;
  const E* row[R];
  for (int r = 0; r < R; ++r) row[r] = a[r];
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = depth - begin < kChain ? depth : begin + kChain;
    VecT<SumOf<E>> sum[R][C] = {};
    for (int64_t k = begin; k < end; ++k, b += b_stride) {
      VecT<E> column[C];
      for (int c = 0; c < C; ++c) {
        column[c] = Load(b + c * kL);
        if (R > 1) KeepInRegister(&column[c]);
      }
      if (FetchesAhead(R)) next.Fetch();
      for (int r = 0; r < R; ++r) {
        VecT<E> value = Broadcast(row[r][k * kAStride]);
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
  constexpr int kL = kLanes<float>;
  const float* row[R];
  for (int r = 0; r < R; ++r) row[r] = a[r];
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = depth - begin < kChain ? depth : begin + kChain;
    VecT<float> sum[R][C] = {};
    const auto add = [&](int64_t k, auto widen) __attribute__((always_inline)) {
      VecT<float> column[C];
      for (int c = 0; c < C; ++c) {
        column[c] = widen(Load(b + (k / 2 * C + c) * kL));
      }
      for (int r = 0; r < R; ++r) {
        VecT<float> value = Broadcast(row[r][k]);
        for (int c = 0; c < C; ++c) {
          if (kOwnA && c > 0) value = Broadcast(row[r][c * a_stride + k]);
          sum[r][c] = Fma(value, column[c], sum[r][c]);
        }
      }
    };
    int64_t k = begin;
    for (; k + 1 < end; k += 2) {
      if (FetchesAhead(R)) next.Fetch();
      add(k, [](auto pairs) { return First(pairs); });
      add(k + 1, [](auto pairs) { return Second(pairs); });
    }
    if (k < end) add(k, [](auto pairs) { return First(pairs); });
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) acc[r][c] = acc[r][c] + sum[r][c];
    }
  }
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
