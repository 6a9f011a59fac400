// Tests of backends/cpu/simd/vector/pack.h, for the instruction set of this
// build.
#include "backends/cpu/simd/vector/pack.h"

#include <limits>
#include <random>
#include <vector>

#include "harness.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// An array that begins one element behind the alignment of its memory.
template <class T>
class Misaligned {
 public:
  explicit Misaligned(int64_t size) : memory_(size + 1) {}
  T* data() { return memory_.data() + 1; }

 private:
  std::vector<T> memory_;
};

template <class E>
E Element(int64_t n) {
  if constexpr (std::is_same_v<E, BFloat16>) {
    return BFloat16::FromFloat(static_cast<float>(n % 200 + 1));
  } else {
    return static_cast<E>(n + 1);
  }
}
double Value(BFloat16 x) { return x.ToFloat(); }
double Value(double x) { return x; }

// Row k of lane n of packed vector v.
template <class T>
double Packed(const T* packed, int64_t k, int64_t vectors, int64_t n,
              WeightFormat format) {
  constexpr int64_t kL = kLanes<T>;
  const bool pairs = format == WeightFormat::kBFloat16Pairs;
  const T* word =
      packed + ((pairs ? k / 2 : k) * vectors + n / kL) * kL + n % kL;
  if (!pairs) return *word;
  uint32_t bits;
  std::memcpy(&bits, word, sizeof bits);
  const auto half = static_cast<uint16_t>(k % 2 ? bits >> 16 : bits);
  return BFloat16{half}.ToFloat();
}

// Columns [1, width - 1) of B [depth, width], by rows or by columns.
template <class E, class T>
void CheckBlock(int64_t depth, int64_t width, bool by_row,
                WeightFormat format) {
  constexpr int64_t kL = kLanes<T>;
  constexpr T kCanary = 12345;
  const int64_t gap = 3;  // between rows or columns
  const int64_t stride = (by_row ? width : depth) + gap;
  Misaligned<E> from(stride * (by_row ? depth : width));
  const int64_t row = by_row ? stride : 1, column = by_row ? 1 : stride;
  for (int64_t k = 0; k < stride * (by_row ? depth : width); ++k) {
    from.data()[k] = Element<E>(-1000);  // gaps
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t n = 0; n < width; ++n) {
      from.data()[k * row + n * column] = Element<E>(k * width + n);
    }
  }
  const int64_t vectors = (width - 2 + kL - 1) / kL;
  const int64_t size = Words(depth, format) * vectors * kL;
  Misaligned<T> to(size + kL);
  std::fill_n(to.data(), size + kL, kCanary);
  PackGroup(PackedFrom{from.data(), row, column, depth, width}, 1, width - 1,
            to.data(), format);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t n = 0; n < vectors * kL; ++n) {
      const double wanted =
          n < width - 2 ? Value(Element<E>(k * width + n + 1)) : 0;
      const double rounded =
          format == WeightFormat::kBFloat16Pairs
              ? BFloat16::FromFloat(static_cast<float>(wanted)).ToFloat()
              : wanted;
      CHECK_EQ(Packed(to.data(), k, vectors, n, format), rounded);
    }
  }
  const bool pairs = format == WeightFormat::kBFloat16Pairs;
  for (int64_t k = depth; pairs && k < 2 * Words(depth, format); ++k) {
    for (int64_t n = 0; n < vectors * kL; ++n) {  // missing rows
      CHECK_EQ(Packed(to.data(), k, vectors, n, format), 0.0);
    }
  }
  for (int64_t k = size; k < size + kL; ++k) CHECK_EQ(to.data()[k], kCanary);
}

template <class E, class T>
void CheckBlocks(WeightFormat format) {
  for (const bool by_row : {true, false}) {
    for (const int64_t depth : {0, 1, 2, 7, 16, 17, 129}) {
      for (const int64_t width : {3, 4, 18, 19, 35, 66, 67}) {
        CheckBlock<E, T>(depth, width, by_row, format);
      }
    }
  }
}

TEST(PackedElements) {
  CheckBlocks<float, float>(WeightFormat::kElements);
  CheckBlocks<double, double>(WeightFormat::kElements);
  CheckBlocks<BFloat16, float>(WeightFormat::kElements);
}

TEST(PackedPairs) {
  CheckBlocks<float, float>(WeightFormat::kBFloat16Pairs);
  CheckBlocks<BFloat16, float>(WeightFormat::kBFloat16Pairs);
}

// Rows of each size, whose last vector has NaN behind the last element.
TEST(StoredPairs) {
  constexpr int kL = kLanes<float>;
  constexpr uint32_t kCanary = 0xdeadbeef;
  for (int64_t size = 1; size <= 3 * kL + 1; ++size) {
    std::vector<float> row(size + kL, std::numeric_limits<float>::quiet_NaN());
    for (int64_t k = 0; k < size; ++k) row[k] = static_cast<float>(k + 1);
    const int64_t words = Words(size, WeightFormat::kBFloat16Pairs);
    std::vector<BFloat16Pair> pairs(words + kL, BFloat16Pair{kCanary});
    for (int64_t u = 0; u < size; u += kL) {
      StorePairs(Load(row.data() + u), reinterpret_cast<float*>(pairs.data()),
                 u, size);
    }
    for (int64_t k = 0; k < 2 * words; ++k) {
      const uint32_t bits = pairs[k / 2].bits;
      const auto half = static_cast<uint16_t>(k % 2 ? bits >> 16 : bits);
      CHECK_EQ(BFloat16{half}.ToFloat(), k < size ? row[k] : 0);
    }
    for (int k = 0; k < kL; ++k) CHECK_EQ(pairs[words + k].bits, kCanary);
  }
}

}  // namespace
}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
