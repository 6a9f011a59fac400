// Tests of products of int8, for the instruction set of this build.
#include "backends/cpu/simd/vector/quads.h"

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/processor/int8_dots.h"
#include "backends/cpu/simd/vector/quad_products.h"
#include "harness.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

constexpr int64_t kL = kLanes<float>;
constexpr float kGuard = 12345;

// The formats that this processor multiplies. test_simd.py encodes the
// instructions of AVX-VNNI as those of AVX-512, where there are only these.
std::vector<WeightFormat> QuadFormats() {
  std::vector<WeightFormat> formats = {WeightFormat::kInt8Quads};
#if defined(TF_LSTM_OPS_ENCODES_VNNI)
  constexpr int kBytes = 64;
#else
  constexpr int kBytes = kVectorBytes;
#endif
  if (kHasFusedDots && cpu::HasInt8Dots(kBytes)) {
    formats.push_back(WeightFormat::kInt8FusedQuads);
  }
  return formats;
}

bool SameBits(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

// --- The rounding of rows.

// Integer k of a rounded row, without the offset.
int64_t Integer(const float* row, int64_t k, WeightFormat format) {
  const auto* data = reinterpret_cast<const char*>(row + 1);
  const int64_t offset = FactorOffset(IsFused(format));
  if (WordsOfQuad(IsFused(format)) == 2) {
    int16_t integer;
    std::memcpy(&integer, data + 2 * k, sizeof integer);
    return integer - offset;
  }
  const auto byte = static_cast<unsigned char>(data[k]);
  return offset ? byte - offset : static_cast<signed char>(byte);
}

// Rounds a row at an odd address, whose memory ends behind it.
void CheckRounding(const std::vector<float>& x, WeightFormat format) {
  constexpr int64_t kGuards = 4;
  const auto width = static_cast<int64_t>(x.size());
  const int64_t words = QuadFactorWords(width, format);
  CHECK(words <= cpu::MostFactorFloats(width));
  std::vector<float> row(words + kGuards, kGuard);
  RoundToQuads(x.data(), width, format, row.data());
  float largest = 0;
  bool finite = true;
  for (const float e : x) {
    finite = finite && std::isfinite(e);
    largest = std::fmax(largest, std::abs(e));
  }
  const bool zeros = !finite || largest < 0x1p-100F;
  const float scale = !finite ? NAN : zeros ? 0 : largest / 127;
  CHECK(SameBits(row[0], scale));
  const int64_t integers = (width + kL - 1) / kL * kL;
  CHECK_EQ(words, 1 + integers / 4 * WordsOfQuad(IsFused(format)));
  for (int64_t k = 0; k < integers; ++k) {
    const bool zero = zeros || k >= width;
    const float wanted = zero ? 0 : std::nearbyint(x[k] * (127 / largest));
    CHECK_EQ(static_cast<float>(Integer(row.data(), k, format)), wanted);
    CHECK(std::abs(wanted) <= 127);
  }
  for (int64_t k = words; k < words + kGuards; ++k) CHECK_EQ(row[k], kGuard);
}

TEST(RowsAreRoundedToEven) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const WeightFormat format : QuadFormats()) {
    for (int64_t width = 1; width <= 40; ++width) {
      for (const float size : {1e-30F, 1e-3F, 1.F, 1e30F}) {
        std::vector<float> x(width);
        for (float& e : x) e = size * normal(random);
        CheckRounding(x, format);
      }
      std::vector<float> ties(width);  // the scale is 1
      for (int64_t k = 1; k < width; ++k) {
        ties[k] = static_cast<float>(k % 2 ? k : -k) + .5F;
      }
      ties[0] = -127;
      CheckRounding(ties, format);
    }
  }
}

TEST(RowsOfUnusualValuesAreRounded) {
  const float kOdd[] = {
      NAN,      -NAN,     INFINITY,         -INFINITY, FLT_MAX,
      -FLT_MAX, 0x1p-99F, 0x1p-100F,        0x1p-101F, FLT_MIN,
      1e-40F,   -1e-40F,  0x1.fffffep-101F, 0,         -0.F};
  for (const WeightFormat format : QuadFormats()) {
    for (int64_t width = 1; width <= 40; ++width) {
      for (const float odd : kOdd) {
        for (const float rest : {0.F, 1e-40F, 0x1p-101F, 0.75F, -3e38F}) {
          std::vector<float> x(width, rest);
          x[width / 2] = odd;
          CheckRounding(x, format);
          CheckRounding(std::vector<float>(width, odd), format);
        }
      }
    }
  }
}

// --- Packing.

// Integer (k, lane) of a packed vector whose rows are `stride` words apart.
int PackedInteger(const float* vector, int64_t stride, int64_t k, int64_t lane,
                  WeightFormat format) {
  const auto* quads = reinterpret_cast<const signed char*>(
      vector + (kHeadRows + k / 4) * stride);
  if (WordsOfQuad(IsFused(format)) == 1) return quads[4 * lane + k % 4];
  return quads[k % 4 / 2 * 2 * kL + 2 * lane + k % 2];
}

void CheckPacking(int64_t depth, int64_t columns, WeightFormat format) {
  constexpr int64_t kGap = 3, kParts = 2;  // another part has every other row
  const int64_t row = columns + kGap, vectors = (columns + kL - 1) / kL;
  std::vector<int8_t> from(depth * row, 99);  // gaps have values too
  std::vector<float> scales(columns);
  for (int64_t n = 0; n < columns; ++n) {
    scales[n] = static_cast<float>(n + 1);
    for (int64_t k = 0; k < depth; ++k) {
      from[k * row + n] = static_cast<int8_t>((k * 37 + n * 11) % 255 - 127);
    }
  }
  const int64_t stride = kParts * kL, vector = QuadRows(depth) * stride;
  std::vector<float> packed(1 + vectors * vector, kGuard);
  PackQuads(from.data(), scales.data(), row, depth, columns,
            {packed.data() + 1, stride, vector, format});
  CHECK_EQ(packed[0], kGuard);
  for (int64_t n = 0; n < vectors * kL; ++n) {
    const float* v = packed.data() + 1 + n / kL * vector;
    const int64_t lane = n % kL;
    int total = 0;
    for (int64_t k = 0; k < (depth + 3) / 4 * 4; ++k) {
      const bool missing = k >= depth || n >= columns;
      const int wanted = missing ? 0 : from[k * row + n];
      CHECK_EQ(PackedInteger(v, stride, k, lane, format), wanted);
      total += wanted;
    }
    int32_t begin;
    std::memcpy(&begin, v + stride + lane, sizeof begin);
    CHECK_EQ(begin, -FactorOffset(IsFused(format)) * total);
    CHECK_EQ(v[lane], n < columns ? scales[n] : 0);
    for (int64_t k = 0; k < QuadRows(depth); ++k) {
      CHECK_EQ(v[k * stride + kL + lane], kGuard);  // of the other part
    }
  }
}

TEST(QuadsArePacked) {
  for (const auto format :
       {WeightFormat::kInt8Quads, WeightFormat::kInt8FusedQuads}) {
    for (const int64_t depth : {1, 2, 3, 4, 5, 16, 129}) {
      for (int64_t columns = 1; columns <= 2 * kL + 1; ++columns) {
        CheckPacking(depth, columns, format);
      }
    }
  }
}

// --- Products.

constexpr int kGroups = 2;
constexpr int64_t kColumnsOfB = kGroups * kColumns * kL;

enum class Values { kAnyOf255, kLargest, kOfOtherSign, kAlternating };
constexpr Values kValues[] = {Values::kAnyOf255, Values::kLargest,
                              Values::kOfOtherSign, Values::kAlternating};

// kRows rows of A and kColumnsOfB columns of B with their exact products.
struct Integers {
  Integers(int64_t rows, Values values)
      : depth(rows),
        a(kRows, std::vector<float>(depth)),
        b(depth * kColumnsOfB),
        totals(kRows * kColumnsOfB) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(-127, 127);
    for (int8_t& e : b) {
      const bool negative = values == Values::kOfOtherSign ||
                            (values == Values::kAlternating && random() % 2);
      e = static_cast<int8_t>(values == Values::kAnyOf255 ? any(random)
                              : negative                  ? -127
                                                          : 127);
    }
    for (auto& row : a) {
      for (float& e : row) {
        e = values == Values::kAnyOf255 ? static_cast<float>(any(random)) : 127;
      }
      row[0] = 127;  // so the integers are those of the rounded row
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int r = 0; r < kRows; ++r) {
        const auto factor = static_cast<int64_t>(a[r][k]);
        int64_t* to = &totals[r * kColumnsOfB];
        for (int64_t n = 0; n < kColumnsOfB; ++n) {
          to[n] += factor * b[k * kColumnsOfB + n];
        }
      }
    }
  }
  int64_t Total(int r, int64_t n) const { return totals[r * kColumnsOfB + n]; }

  const int64_t depth;
  std::vector<std::vector<float>> a;
  std::vector<int8_t> b;
  std::vector<int64_t> totals;
};

float ScaleOfRow(int r) { return 0.013F * static_cast<float>(r + 1); }
float ScaleOfColumn(int64_t n) { return 0.0007F * static_cast<float>(n + 3); }
float Before(int r, int64_t n) { return static_cast<float>(r - n) / 3; }

// The factors as an engine stores them, for kernels of C vectors.
template <int C>
struct Quads {
  static constexpr int64_t kRow = C * kL;

  Quads(const Integers& from, WeightFormat format)
      : depth(from.depth),
        group(QuadRows(depth) * kRow),
        b(1 + kGroups * group),
        a(kRows, std::vector<float>(QuadFactorWords(depth, format))) {
    std::vector<float> scales(kColumnsOfB);
    for (int64_t n = 0; n < kColumnsOfB; ++n) scales[n] = ScaleOfColumn(n);
    for (int g = 0; g < kGroups; ++g) {
      PackQuads(from.b.data() + g * kRow, scales.data() + g * kRow, kColumnsOfB,
                depth, kRow, {b.data() + 1 + g * group, kRow, kL, format});
    }
    for (int r = 0; r < kRows; ++r) {
      RoundToQuads(from.a[r].data(), depth, format, a[r].data());
      CHECK_EQ(a[r][0], 1);
      a[r][0] = ScaleOfRow(r);
      rows[r] = a[r].data();
    }
  }
  QuadColumns Columns() const { return {b.data() + 1, depth, group}; }
  float* Head(int64_t n, int64_t row) {
    return b.data() + 1 + n / kRow * group + row * kRow + n % kRow;
  }

  const int64_t depth, group;
  std::vector<float> b;
  std::vector<std::vector<float>> a;
  const float* rows[kRows];
};

// Calls kernel(sums), which adds to `columns` columns of the rows from first
// on. Returns whether the sums are those of Before and of the totals.
template <class Totals, class Kernel>
void CheckSums(int first, int rows, int64_t columns, const Totals& total,
               const Kernel& kernel) {
  std::vector<VecT<float>> sums(kRows * kColumnsOfB / kL);
  auto* elements = reinterpret_cast<float*>(sums.data());
  for (int r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < columns; ++n) {
      elements[r * columns + n] = Before(first + r, n);
    }
  }
  kernel(sums.data());
  for (int r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < columns; ++n) {
      const auto sum = static_cast<float>(total(first + r, n));
      const float wanted =
          Before(first + r, n) + sum * ScaleOfColumn(n) * ScaleOfRow(first + r);
      CHECK(SameBits(elements[r * columns + n], wanted));
    }
  }
  const auto behind = static_cast<int64_t>(kRows * kColumnsOfB);
  for (int64_t n = rows * columns; n < behind; ++n) CHECK_EQ(elements[n], 0);
}

template <int C, class Totals>
void CheckKernels(const Quads<C>& q, WeightFormat format, const Totals& total) {
  for (int rows = 1; rows <= kRows; ++rows) {
    CheckSums(0, rows, C * kL, total, [&](VecT<float>* sums) {
      MultiplyQuads<C>(q.rows, rows, q.Columns(), format,
                       reinterpret_cast<VecT<float>(*)[C]>(sums));
    });
  }
  for (int r = 0; r < kRows; ++r) {
    CheckSums(r, 1, C * kL, total, [&](VecT<float>* sums) {
      MultiplyQuadsOfRow<1, C>(q.rows[r], q.Columns(), format, sums);
    });
    CheckSums(r, 1, 2 * C * kL, total, [&](VecT<float>* sums) {
      MultiplyQuadsOfRow<2, C>(q.rows[r], q.Columns(), format, sums);
    });
  }
}

template <int C>
void CheckProducts(const Integers& from) {
  for (const WeightFormat format : QuadFormats()) {
    Quads<C> q(from, format);
    CheckKernels(q, format, [&](int r, int64_t n) { return from.Total(r, n); });
    // A float rounds large totals. So the sums of columns begin with the totals
    // of a row less, and each bit of the differences counts.
    const int row = static_cast<int>(from.depth % kRows);
    const auto less = [&](int64_t n) {
      return static_cast<uint32_t>(from.Total(row, n)) - 5U;
    };
    for (int64_t n = 0; n < kGroups * C * kL; ++n) {
      uint32_t begin;
      std::memcpy(&begin, q.Head(n, 1), sizeof begin);
      begin -= less(n);
      std::memcpy(q.Head(n, 1), &begin, sizeof begin);
    }
    CheckKernels(q, format, [&](int r, int64_t n) {
      const auto bits = static_cast<uint32_t>(from.Total(r, n)) - less(n);
      return static_cast<int32_t>(bits);
    });
  }
}

void CheckDepths(const std::vector<int64_t>& depths) {
  for (const int64_t depth : depths) {
    for (const Values values : kValues) {
      const Integers from(depth, values);
      for (const int64_t total : from.totals) {
        CHECK(std::abs(total) <= INT32_MAX);
      }
      CheckProducts<1>(from);
      CheckProducts<2>(from);
      CheckProducts<3>(from);
      CheckProducts<4>(from);
    }
  }
}

TEST(ProductsOfQuadsAreExact) {
  CheckDepths({1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 127, 128, 129, 511, 512, 513});
}

TEST(ProductsOfTheMostQuadsAreExact) { CheckDepths({cpu::kMostInt8Rows}); }

}  // namespace
}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
