// Tests of MultiplyRows, for the instruction set of this build.
#include "backends/cpu/simd/vector/gemm.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "harness.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// Whole chains and rests of them, with the pairs' odd rows.
constexpr int64_t kDepths[] = {0, 1, 2, 127, 128, 129, 257};
constexpr int64_t kMaxDepth = 257;

// Rounds to bfloat16, so that the products of pairs are those of the elements.
template <class T>
T Draw(std::mt19937* random) {
  const auto number = static_cast<float>(std::normal_distribution<>()(*random));
  return BFloat16::FromFloat(number).ToFloat();
}

// The factors of a product of kMostRows rows and C vectors of columns. A and B
// begin one element behind the alignment of their memory, and their rows are
// apart by an odd number of elements.
template <class T, int C>
struct Factors {
  static constexpr int64_t kL = kLanes<T>, kWidth = C * kL;
  static constexpr int64_t kGate = kMaxDepth + 4;  // of a row's own A
  static constexpr int64_t kRowOfA = C * kGate + 3, kRowOfB = kWidth + 5;

  std::vector<T> a, b;

  Factors() : a(kMostRows * kRowOfA + 1), b(kMaxDepth * kRowOfB + 1) {
    std::mt19937 random(C);
    for (T& x : a) x = Draw<T>(&random);
    for (T& x : b) x = Draw<T>(&random);
  }
  const T* A(int64_t r, int gate) const {
    return a.data() + 1 + r * kRowOfA + gate * kGate;
  }
  const T* B(int64_t k) const { return b.data() + 1 + k * kRowOfB; }
};

// The result, and the sums of the products' sizes.
struct Sum {
  double value = 0, sizes = 0;
};

template <class T, int C>
Sum Reference(const Factors<T, C>& f, int64_t depth, int64_t r, int64_t n,
              bool own, double before) {
  Sum sum = {before, std::abs(before)};
  for (int64_t k = 0; k < depth; ++k) {
    const int gate = own ? static_cast<int>(n / kLanes<T>) : 0;
    const double product = static_cast<double>(f.A(r, gate)[k]) * f.B(k)[n];
    sum.value += product;
    sum.sizes += std::abs(product);
  }
  return sum;
}

// Runs a product that adds to acc[r][c] = r + c, for each number of rows.
// row(r) says where row r of A is. The bits of a row are the same for any
// number of rows, with and without prefetching.
template <class T, int C, bool kOwnA, int kAStride = 1, class RowOf>
void Check(const Factors<T, C>& f, WeightColumns<T> b, int64_t gate_stride,
           const RowOf& row_of) {
  const auto most = static_cast<int>(MostRows(b.format));
  VecT<T> last[kMostRows][C] = {};
  for (int count = most; count >= 1; --count) {
    const T* row[kMostRows] = {};
    VecT<T> acc[kMostRows][C] = {};
    for (int r = 0; r < count; ++r) {
      row[r] = row_of(r);
      for (int c = 0; c < C; ++c) acc[r][c] = Broadcast(static_cast<T>(r + c));
    }
    b.prefetches = count % 2 != 0;
    {
      const TileScope tiles(kTiles && b.format != WeightFormat::kElements);
      MultiplyRows<C, kOwnA, kAStride>({row, count, gate_stride}, b, acc);
    }
    for (int r = 0; r < most; ++r) {
      for (int64_t n = 0; n < C * kLanes<T>; ++n) {
        const int64_t c = n / kLanes<T>, lane = n % kLanes<T>;
        if (r >= count) {
          CHECK_EQ(acc[r][c][lane], 0);  // no row of the product
          continue;
        }
        const Sum wanted = Reference(f, b.depth, r, n, kOwnA && C > 1,
                                     static_cast<double>(r + c));
        // Each of the `depth` products and sums of T, and those of chains,
        // rounds by half a unit of at most the sum of the sizes.
        const double bound = static_cast<double>(2 * b.depth + 4) *
                             std::numeric_limits<T>::epsilon() / 2 *
                             wanted.sizes;
        CHECK(std::abs(acc[r][c][lane] - wanted.value) <= bound);
        if (count == most) continue;
        CHECK_EQ(std::memcmp(&acc[r][c], &last[r][c], sizeof acc[r][c]), 0);
      }
    }
    if (count == most) std::memcpy(last, acc, sizeof acc);
  }
}

template <class T, int C>
void CheckElements() {
  const Factors<T, C> f;
  for (const int64_t depth : kDepths) {
    const WeightColumns<T> b = {f.B(0), depth, WeightFormat::kElements,
                                f.kRowOfB};
    const auto row_of = [&](int r) { return f.A(r, 0); };
    Check<T, C, false>(f, b, 0, row_of);
    Check<T, C, true>(f, b, f.kGate, row_of);
    // A by columns, as the gradients of weights read it.
    std::vector<T> columns(kMaxDepth * kRows + 1);
    for (int64_t k = 0; k < depth; ++k) {
      for (int r = 0; r < kRows; ++r) columns[1 + k * kRows + r] = f.A(r, 0)[k];
    }
    Check<T, C, false, kRows>(f, b, 0,
                              [&](int r) { return columns.data() + 1 + r; });
  }
}

// With dots A is pairs too, by row and gate.
template <int C>
void CheckPairs() {
  const Factors<float, C> f;
  constexpr WeightFormat kPairs = WeightFormat::kBFloat16Pairs;
  constexpr int64_t kRow = C * f.kGate;  // words
  for (const int64_t depth : kDepths) {
    std::vector<float> b(Words(depth, kPairs) * f.kWidth + 1);
    PackGroup(PackedFrom{f.B(0), f.kRowOfB, int64_t{1}, depth, f.kWidth}, 0,
              f.kWidth, b.data() + 1, kPairs);
    const WeightColumns<float> columns = {b.data() + 1, depth, kPairs, 0};
    if constexpr (!kDotsPairs) {
      const auto row_of = [&](int r) { return f.A(r, 0); };
      Check<float, C, false>(f, columns, 0, row_of);
      Check<float, C, true>(f, columns, f.kGate, row_of);
    } else {
      std::vector<float> a(kMostRows * kRow + 1);
      for (int r = 0; r < kMostRows; ++r) {
        for (int gate = 0; gate < C; ++gate) {
          for (int64_t k = 0; k < depth; k += kLanes<float>) {
            float* words = a.data() + 1 + r * kRow + gate * f.kGate;
            StorePairs(LoadN(f.A(r, gate) + k, depth - k), words, k, depth);
          }
        }
      }
      const auto row_of = [&](int r) { return a.data() + 1 + r * kRow; };
      Check<float, C, false>(f, columns, 0, row_of);
      Check<float, C, true>(f, columns, f.kGate, row_of);
    }
  }
}

TEST(ProductsOfFloats) {
  CheckElements<float, 1>();
  CheckElements<float, 2>();
  CheckElements<float, 3>();
  CheckElements<float, 4>();
}

TEST(ProductsOfDoubles) {
  CheckElements<double, 1>();
  CheckElements<double, 2>();
  CheckElements<double, 3>();
  CheckElements<double, 4>();
}

TEST(ProductsOfPairs) {
  CheckPairs<1>();
  CheckPairs<2>();
  CheckPairs<3>();
  CheckPairs<4>();
}

}  // namespace
}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
