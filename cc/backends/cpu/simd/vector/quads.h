// Products of int8: how weights, and the rows that are multiplied with them,
// are stored as quads, and the instructions that multiply them.
//
// A row x of A is rounded to s q with s = max |x| / 127 and integers q from
// -127 to 127, so its error is at most s / 2. A column of B is a scale times
// integers of this range. An element of the product is
//
//   (sum over k of q(row, k) q(k, column)) * scale(column) * s(row)
//
// The sum is exact in int32 for kMostInt8Rows terms, whatever the order. All
// other operations are those of single elements. So every processor has the
// same bits.
//
// A quad is four rows of a column of B, and the four elements of a row of A
// that are multiplied with them. There are two formats:
//
// kInt8FusedQuads. An instruction for dot products multiplies the four bytes of
// each lane, and adds them to a sum. Those of x86 take bytes without sign of A:
// A has q + 128, and the sum of a column begins with -128 times the sum of its
// integers. All partial sums fit in int32, so the result is the same.
//
// kInt8Quads. x86 multiplies pairs of 16-bit integers: A has 16-bit integers,
// and bytes of B are widened. The first half of the bytes of a vector of quads
// has rows 0 and 1 of all lanes, the second half rows 2 and 3. Arm multiplies
// bytes to 16-bit products.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUADS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUADS_H_

#include <cstdint>
#include <cstring>
#include <limits>

#include "backends/cpu/simd/vector/vec.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/weights/weight_format.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

using cpu::WeightFormat;

// Engines whose products are of pairs of bfloat16 have no products of int8.
#if defined(TF_LSTM_OPS_DOTS_BFLOAT16)
constexpr bool kHasQuads = false;
#else
constexpr bool kHasQuads = true;
#endif

#if defined(__x86_64__)
constexpr bool kIsX86 = true;
#else
constexpr bool kIsX86 = false;
#endif

// Whether there are processors of this instruction set with kInt8FusedQuads.
#if defined(__x86_64__) && !defined(__AVX2__)
constexpr bool kHasFusedDots = false;
#else
constexpr bool kHasFusedDots = true;
#endif

// Rows of packed weights before the quads: the scales of the columns, and the
// integers with which their sums begin.
constexpr int64_t kHeadRows = 2;

// Rows of packed weights, a word each, for `depth` rows of B.
constexpr int64_t QuadRows(int64_t depth) {
  return kHeadRows + CeilDiv(depth, 4);
}

constexpr bool IsFused(WeightFormat format) {
  return format == WeightFormat::kInt8FusedQuads;
}
// Whether the weights are quads.
constexpr bool IsQuads(WeightFormat format) {
  return format == WeightFormat::kInt8Quads || IsFused(format);
}

// What is added to the integers of a row of A.
constexpr int32_t FactorOffset(bool fused) { return kIsX86 && fused ? 128 : 0; }

// Words of a quad of a row of A.
constexpr int64_t WordsOfQuad(bool fused) { return kIsX86 && !fused ? 2 : 1; }

// Words of a row of A: its scale, and integers of whole vectors of lanes.
constexpr int64_t QuadFactorWords(int64_t width, WeightFormat format) {
  constexpr int64_t kL = kLanes<float>;
  return 1 + CeilDiv(width, kL) * kL / 4 * WordsOfQuad(IsFused(format));
}

// A word of a row of A in all lanes.
TF_LSTM_OPS_INLINE VecT<int32_t> BroadcastWord(const float* from) {
  int32_t word;
  std::memcpy(&word, from, sizeof word);
  return Broadcast(word);
}

// What is multiplied with word `word` of a quad of A, of a vector of quads.
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> LoadQuads(const float* from,
                                           [[maybe_unused]] int word) {
#if defined(__x86_64__)
  if constexpr (!kFused) {
    const auto* bytes =
        reinterpret_cast<const char*>(from) + word * kVectorBytes / 2;
#if defined(__AVX512F__)
    const auto half =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    return reinterpret_cast<VecT<int32_t>>(_mm512_cvtepi8_epi16(half));
#elif defined(__AVX2__)
    const auto half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    return reinterpret_cast<VecT<int32_t>>(_mm256_cvtepi8_epi16(half));
#else
    const auto half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
    return reinterpret_cast<VecT<int32_t>>(_mm_cvtepi8_epi16(half));
#endif
  }
#endif
  return reinterpret_cast<VecT<int32_t>>(Load(from));
}

// The sum, plus the products of the integers of each lane. Assembly for pairs:
// GCC computes many products before it adds them, for which it has no
// registers.
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> Dot(VecT<int32_t> sum, VecT<int32_t> a,
                                     VecT<int32_t> b) {
#if defined(__AVX512F__)
  if constexpr (kFused) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "vm"(b));
  } else {
    VecT<int32_t> products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+v"(sum), "=&v"(products)
        : "v"(a), "v"(b));
  }
  return sum;
#elif defined(__AVX2__)
  if constexpr (kFused) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "xm"(b));
  } else {
    VecT<int32_t> products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum), "=&x"(products)
        : "x"(a), "x"(b));
  }
  return sum;
#elif defined(__x86_64__)
  static_assert(!kFused);
  return sum + reinterpret_cast<VecT<int32_t>>(_mm_madd_epi16(
                   reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  if constexpr (kFused) {
#if defined(__linux__)
    // The GNU assembler has no dot products in an extension of Armv8.0. Later
    // functions may have those of bfloat16.
    asm(".arch armv8.2-a+dotprod+bf16\n\tsdot %0.4s, %1.16b, %2.16b"
        : "+w"(sum)
        : "w"(a), "w"(b));
#else
    asm("sdot.4s %0, %1, %2" : "+w"(sum) : "w"(a), "w"(b));
#endif
    return sum;
  }
  // Two products of a pair are at most 2 * 127 * 127, below 2^15.
  const auto x = reinterpret_cast<int8x16_t>(a);
  const auto y = reinterpret_cast<int8x16_t>(b);
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y));
  const int16x8_t high = vmull_high_s8(x, y);
  return vpadalq_s16(sum, vpaddq_s16(low, high));
#endif
}

typedef int8_t ByteVector __attribute__((vector_size(kVectorBytes / 4)));
typedef int16_t ShortVector __attribute__((vector_size(kVectorBytes / 2)));

// The largest bits of |x|, which have the order of the values. NaN has larger
// ones than infinity.
inline int32_t LargestBits(const float* x, int64_t width) {
  VecT<int32_t> most = {};
  for (int64_t k = 0; k < width; k += kLanes<float>) {
    const auto bits =
        reinterpret_cast<VecT<int32_t>>(LoadN(x + k, width - k)) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  int32_t lanes[kLanes<int32_t>];
  Store(most, lanes);
  int32_t result = 0;
  for (const int32_t lane : lanes) result = lane > result ? lane : result;
  return result;
}

// Rounds elements of a row by a factor to integers plus `offset`, which become
// lanes of type Integers.
template <class Integers>
TF_LSTM_OPS_INLINE void RoundElements(const float* x, int64_t width,
                                      float factor, int32_t offset, char* to) {
  // The sum has the integer, rounded to even, in its lower bits.
  const VecT<float> factors = Broadcast(factor), rounder = Broadcast(0x1.8p23F);
  for (int64_t k = 0; k < width; k += kLanes<float>, to += sizeof(Integers)) {
    const VecT<float> sum = LoadN(x + k, width - k) * factors + rounder;
    const auto q = __builtin_convertvector(
        reinterpret_cast<VecT<int32_t>>(sum) + offset, Integers);
    std::memcpy(to, &q, sizeof q);
  }
}

// Rounds a row x [width] to a row of A. A row that is not finite becomes NaN
// times zeros. One whose elements are all below kLeast becomes zeros.
inline TF_LSTM_OPS_NOINLINE void RoundToQuads(const float* x, int64_t width,
                                              WeightFormat format, float* to) {
  constexpr float kLeast = 0x1p-100F;  // 127 / kLeast is finite
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr float kMost = 127;
  const int32_t offset = FactorOffset(IsFused(format));
  const int32_t bits = LargestBits(x, width);
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  auto* integers = reinterpret_cast<char*>(to + 1);
  if (bits >= kInfinity || largest < kLeast) {
    *to = bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN() : 0;
    const int64_t words = QuadFactorWords(width, format) - 1;
    std::memset(integers, offset, words * sizeof(float));
    return;
  }
  *to = largest / kMost;
  if (WordsOfQuad(IsFused(format)) == 1) {
    RoundElements<ByteVector>(x, width, kMost / largest, offset, integers);
  } else {
    RoundElements<ShortVector>(x, width, kMost / largest, offset, integers);
  }
}

// Packs columns [begin, end) of a matrix [depth, .] as vectors of [QuadRows(
// depth), lanes]. Vector v begins v * distance words behind the first one, its
// rows are `stride` words apart. Missing rows and columns become zero.
struct QuadsTo {
  float* data;
  int64_t stride, distance;
  WeightFormat format;
};

inline TF_LSTM_OPS_NOINLINE void PackQuads(const int8_t* from,
                                           const float* scales,
                                           int64_t row_stride, int64_t depth,
                                           int64_t columns, const QuadsTo& to) {
  constexpr int kL = kLanes<float>;
  const bool halves = WordsOfQuad(IsFused(to.format)) == 2;
  for (int64_t u = 0; u < columns; u += kL) {
    float* packed = to.data + u / kL * to.distance;
    const int64_t width = Min(columns - u, kL);
    VecT<int32_t> total = {};
    for (int64_t k = 0; k < depth; k += 4) {
      int8_t quads[4 * kL] = {};
      int32_t sums[kL] = {};
      for (int64_t r = 0; r < Min(4, depth - k); ++r) {
        const int8_t* row = from + (k + r) * row_stride + u;
        int8_t* lane = quads + (halves ? r / 2 * 2 * kL + r % 2 : r);
        for (int64_t n = 0; n < width; ++n) {
          lane[n * (halves ? 2 : 4)] = row[n];
          sums[n] += row[n];
        }
      }
      std::memcpy(packed + (kHeadRows + k / 4) * to.stride, quads,
                  sizeof quads);
      total += Load(sums);
    }
    Store(LoadN(scales + u, width), packed);
    total *= -FactorOffset(IsFused(to.format));
    std::memcpy(packed + to.stride, &total, sizeof total);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUADS_H_
