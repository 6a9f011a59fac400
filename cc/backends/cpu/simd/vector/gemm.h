// Matrix products: weights packed into columns of one vector, and kernels that
// compute up to kRows rows times kColumns vectors of the result.
//
// Every element of a product is a sum of chains of up to kChain multiply-adds,
// fused where the instruction set has them, over k in ascending order; the sums
// of the chains are added in order. It therefore depends on neither the number
// of threads nor the other rows and columns.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_GEMM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_GEMM_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "backends/cpu/simd/vector/pack.h"
#include "backends/cpu/simd/vector/quad_products.h"
#include "backends/cpu/simd/vector/tiles.h"
#include "backends/cpu/sizes.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

constexpr int64_t kChain = 128;  // multiply-adds of a chain
static_assert(kChain % 2 == 0, "a chain begins with a whole pair of rows");

// Rows of B that a product of many rows of A reads at a time, in four vectors
// of columns: 128 KiB with AVX-512, which stay in the L2 cache for all rows of
// A. The result is read and written once for them. 256 rows took 1.01 to 1.04
// times as long in the backward pass: python3 benchmarks/engine
// lstm,32,25,512,512 lstm,16,50,256,256.
constexpr int64_t kDepth = 512;

// Columns and rows of an item of a large product.
template <class T>
constexpr int64_t kProductColumns = kColumns * kLanes<T>;
constexpr int64_t kProductRows = 64 * kRows;

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

// Rows of weights from the one that a kernel reads to the one that it
// prefetches: the distance that was measured, on an Intel Xeon 6.
constexpr int64_t kRowsAhead = 16;

// Calls f(k, column) for k in [begin, end). column(c) is vector c of row k of
// B, where `at` is vector 0 of row `begin`. kPrefetched: columns, or 0.
template <class A, int kPrefetched, class B, class F>
TF_LSTM_OPS_INLINE void ForEachRow(const B* at, int64_t stride, int64_t begin,
                                   int64_t end, const F& f) {
  constexpr int kL = kLanes<A>;
  int64_t k = begin;
  if constexpr (std::is_same_v<A, B>) {
    for (; k < end; ++k, at += stride) {
      for (int c = 0; c < kPrefetched; ++c) {
        PrefetchToRead(at + kRowsAhead * stride + c * kL);
      }
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

// acc[r][c] += a(r, :) b(:, c). Element k of row r of A is at a[r] + k *
// kAStride, `depth` of them; b is [depth, C, lanes], its rows `b_stride` apart.
// With kOwnA each vector of columns has its own A, at a[r] + c * a_stride.
//
// A and B are of one type, or A is float and B has pairs of bfloat16, [depth /
// 2, C, lanes], which are widened: the bits are those of the same values in
// float.
//
// The chains are outside of the register tiles, which read the same rows of the
// weights shortly after each other.
template <class A, class B, int R, int C, bool kOwnA, int kAStride,
          bool kPrefetches>
void Accumulate(const A* const* a, int64_t a_stride, const B* b,
                int64_t b_stride, int64_t depth, VecT<SumOf<A>> (*acc)[C]) {
  constexpr int64_t kElements = std::is_same_v<A, B> ? 1 : 2;  // a word of B
  for (int64_t begin = 0; begin < depth; begin += kChain) {
    const int64_t end = Min(begin + kChain, depth);
    const B* chain = b + begin / kElements * b_stride;
    ForEachRegisterTile<R, C, kOwnA>([=](auto first_row, auto rows,
                                         auto first_column,
                                         auto columns) TF_LSTM_OPS_LAMBDA {
      constexpr int kRegisterRows = decltype(rows)::value;
      constexpr int kRegisterColumns = decltype(columns)::value;
      constexpr int kColumn = decltype(first_column)::value;
      const A* row[kRegisterRows];
      for (int r = 0; r < kRegisterRows; ++r) row[r] = a[first_row + r];
      VecT<SumOf<A>> sum[kRegisterRows][kRegisterColumns] = {};
      const auto add = [&](int64_t k, const auto& load) TF_LSTM_OPS_LAMBDA {
        if constexpr (RegisterTileOf(R, C, kOwnA).keeps_rows) {
          VecT<A> value[kRegisterRows];
          for (int r = 0; r < kRegisterRows; ++r)
            value[r] = Broadcast(row[r][k * kAStride]);
          for (int c = 0; c < kRegisterColumns; ++c) {
            const VecT<A> column = load(c);
            for (int r = 0; r < kRegisterRows; ++r)
              sum[r][c] = Fma(value[r], column, sum[r][c]);
          }
        } else {
          VecT<A> column[kRegisterColumns];
          for (int c = 0; c < kRegisterColumns; ++c) {
            column[c] = load(c);
            if (kRegisterRows > 1) KeepInRegister(&column[c]);
          }
          for (int r = 0; r < kRegisterRows; ++r) {
            VecT<A> value = Broadcast(row[r][k * kAStride]);
            for (int c = 0; c < kRegisterColumns; ++c) {
              if (kOwnA && kColumn + c > 0) {
                value = Broadcast(row[r][(kColumn + c) * a_stride + k]);
              }
              sum[r][c] = Fma(value, column[c], sum[r][c]);
            }
          }
        }
      };
      ForEachRow<A, kPrefetches ? kRegisterColumns : 0>(
          chain + kColumn * kLanes<A>, b_stride, begin, end, add);
      for (int r = 0; r < kRegisterRows; ++r) {
        for (int c = 0; c < kRegisterColumns; ++c) {
          VecT<SumOf<A>>* to = &acc[first_row + r][kColumn + c];
          *to = *to + sum[r][c];
        }
      }
    });
  }
}

// The kernels of 1 to kRows rows, compiled once for all cells.
template <class A, class B, int C, bool kOwnA, int kAStride,
          bool kPrefetches = false>
constexpr decltype(&Accumulate<A, B, 1, C, kOwnA, kAStride, kPrefetches>)
    kKernels[] = {&Accumulate<A, B, 1, C, kOwnA, kAStride, kPrefetches>,
                  &Accumulate<A, B, 2, C, kOwnA, kAStride, kPrefetches>,
                  &Accumulate<A, B, 3, C, kOwnA, kAStride, kPrefetches>,
                  &Accumulate<A, B, 4, C, kOwnA, kAStride, kPrefetches>,
                  &Accumulate<A, B, 5, C, kOwnA, kAStride, kPrefetches>,
                  &Accumulate<A, B, 6, C, kOwnA, kAStride, kPrefetches>};
static_assert(kRows == 6, "kKernels has a kernel for each number of rows");

// Up to MostRows rows of A. Where the weights are pairs of bfloat16 and the
// processor multiplies pairs, the rows are pairs too, and strides count words.
template <class T>
struct FactorRows {
  const T* const* row;
  int64_t count;
  int64_t gate_stride = 0;  // with own rows for each gate, from one to the next
};

// B [depth, C vectors], its rows `stride` elements apart.
template <class T>
struct WeightColumns {
  const T* data;
  int64_t depth;
  WeightFormat format = WeightFormat::kElements;
  int64_t stride = 0;       // 0: packed, C vectors
  bool prefetches = false;  // whether to prefetch the weights
};

// acc += A B. With kOwnA each vector of columns, a gate, has its own rows.
template <int C, bool kOwnA = false, int kAStride = 1, class T>
void MultiplyRows(const FactorRows<T>& a, const WeightColumns<T>& b,
                  VecT<T> (*acc)[C]) {
  constexpr bool kOwn = kOwnA && C > 1;  // one vector of columns has one A
  const int64_t rows = a.count - 1,
                stride = b.stride == 0 ? C * kLanes<T> : b.stride;
  if constexpr (std::is_same_v<T, float> && kHasQuads && kAStride == 1 &&
                !kOwn) {
    if (IsQuads(b.format)) {
      return MultiplyQuads<C>(a.row, a.count, {b.data, b.depth, 0}, b.format,
                              acc);
    }
  }
  if constexpr (std::is_same_v<T, float> && kTiles) {
    if (b.format == WeightFormat::kBFloat16Pairs) {
      return MultiplyTiles<C, kOwn>(
          {reinterpret_cast<const BFloat16Pair* const*>(a.row), a.count,
           reinterpret_cast<const BFloat16Pair*>(b.data), stride,
           Words(b.depth, b.format)},
          a.gate_stride, acc);
    }
  } else if constexpr (std::is_same_v<T, float> &&
                       (kDotsPairs || kAStride == 1)) {
    if (b.format == WeightFormat::kBFloat16Pairs) {
      using Factor = std::conditional_t<kDotsPairs, BFloat16Pair, float>;
      const int64_t depth = kDotsPairs ? Words(b.depth, b.format) : b.depth;
      return kKernels<Factor, BFloat16Pair, C, kOwn, kAStride>[rows](
          reinterpret_cast<const Factor* const*>(a.row), a.gate_stride,
          reinterpret_cast<const BFloat16Pair*>(b.data), stride, depth, acc);
    }
  }
  // With 16 registers prefetching lost on each processor that was measured.
  if constexpr (kRegisters == 32 && kAStride == 1 && C > 1) {
    if (b.prefetches) {
      return kKernels<T, T, C, kOwn, kAStride, true>[rows](
          a.row, a.gate_stride, b.data, stride, b.depth, acc);
    }
  }
  kKernels<T, T, C, kOwn, kAStride>[rows](a.row, a.gate_stride, b.data, stride,
                                          b.depth, acc);
}

// sums[r] += a(r, :) b for K rows of B where they lie, `b_stride` apart, of so
// many vectors of columns. The factors stay in registers while a row passes:
// those of R <= kRows rows of A and K = OuterDepth(R) of B.
constexpr int OuterDepth(int rows) {
  int depth = 8;
  while (rows * (depth + 1) + 1 > kRegisters) depth /= 2;
  return depth;
}

template <class T, int R, int K, class E>
__attribute__((noinline)) void AddOuter(const T* const (&a)[R], const E* b,
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

// The rows and columns of a product that MultiplyBand computes, and whether it
// adds to them.
struct ProductRange {
  int64_t begin, end;  // rows
  int64_t columns;     // in C vectors
  bool add = false;
};

// A product without dropout.
struct KeepsAll {
  std::nullptr_t operator()(int64_t) const { return nullptr; }
};

// A band of rows of the product A B. a_of(m) and c_of(m) say where row m of A
// and of the product are. The product is multiplied by keep_of(m) where that is
// not null.
template <int C, int kAStride = 1, class T, class AOf, class COf,
          class KeepOf = KeepsAll>
void MultiplyBand(const AOf& a_of, const WeightColumns<T>& b,
                  const ProductRange& band, const COf& c_of,
                  const KeepOf& keep_of = {}) {
  constexpr int kL = kLanes<T>;
  const int64_t most = MostRows(b.format);
  for (int64_t m = band.begin; m < band.end; m += most) {
    const int64_t rows = Min(band.end - m, most);
    const T* row[kMostRows] = {};
    T* result[kMostRows] = {};
    VecT<T> acc[kMostRows][C] = {};
    for (int64_t r = 0; r < rows; ++r) {
      row[r] = a_of(m + r);
      result[r] = c_of(m + r);
      for (int v = 0; v < C; ++v) PrefetchToWrite(result[r] + v * kL);
    }
    MultiplyRows<C, false, kAStride>({row, rows}, b, acc);
    for (int64_t r = 0; r < rows; ++r) {
      const T* kept = keep_of(m + r);
      for (int v = 0; v < C; ++v) {
        const int64_t width = band.columns - v * kL;
        VecT<T> sum = acc[r][v];
        if (kept) sum = sum * LoadN(kept + v * kL, width);
        if (band.add) sum = LoadN(result[r] + v * kL, width) + sum;
        StoreN(sum, result[r] + v * kL, width);
      }
    }
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_GEMM_H_
