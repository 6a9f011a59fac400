// Products of int8: how weights, and the rows that are multiplied with them,
// are stored as quads, and what one instruction multiplies.
//
// A quad is a word of four int8 from -127 to 127: of a row of A four
// neighbours, of a column of B four rows. A row x of A is rounded to s q with s
// = max |x| / 127, so it has the error s / 2 at most. A column of B is its
// scale times integers. An element of the product is
//
//   s(row) scale(column) * sum over k of q(row, k) q(k, column)
//
// The sum is exact in int32 for kMostInt8Rows terms, whatever the order. All
// other operations are those of single elements. So every processor has the
// same bits.
//
// The instructions of AVX512_VNNI and AVX_VNNI multiply bytes without sign by
// bytes with sign. A row of A then has q + 128, and the sum of a column begins
// with -128 times the sum of its integers. They wrap around, so the result is
// the same.
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

// Words of a row of A: its scale, and whole vectors of lanes of bytes.
constexpr int64_t QuadFactorWords(int64_t width) {
  constexpr int64_t kBytes = kLanes<float>;
  return 1 + CeilDiv(width, kBytes) * kBytes / 4;
}

// Whether the weights are quads.
constexpr bool IsQuads(WeightFormat format) {
  return format == WeightFormat::kInt8Quads ||
         format == WeightFormat::kInt8FusedQuads;
}

// What is added to the bytes of a row of A.
constexpr int32_t FactorOffset(WeightFormat format) {
#if defined(__x86_64__)
  return format == WeightFormat::kInt8FusedQuads ? 128 : 0;
#else
  return 0;
#endif
}

// The sum, plus in each lane the products of the four bytes of a and b.
// kFused: by instructions for
// dot products; a has the offset of kInt8FusedQuads.
#if defined(__AVX512F__)
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> Dot(VecT<int32_t> sum, VecT<int32_t> a,
                                     VecT<int32_t> b) {
  if constexpr (kFused) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "vm"(b));
    return sum;
  } else {
    // |a| (sign of a) b: two products are at most 2 * 127 * 127, below 2^15.
    const auto bytes = reinterpret_cast<__m512i>(a);
    const __m512i signed_b = _mm512_mask_sub_epi8(
        reinterpret_cast<__m512i>(b), _mm512_movepi8_mask(bytes),
        _mm512_setzero_si512(), reinterpret_cast<__m512i>(b));
    const __m512i pairs = _mm512_maddubs_epi16(
        _mm512_maskz_abs_epi8(~__mmask64{0}, bytes), signed_b);
    return sum + reinterpret_cast<VecT<int32_t>>(
                     _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
}
#elif defined(__AVX2__)
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> Dot(VecT<int32_t> sum, VecT<int32_t> a,
                                     VecT<int32_t> b) {
  if constexpr (kFused) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "xm"(b));
    return sum;
  } else {
    const auto bytes = reinterpret_cast<__m256i>(a);
    const __m256i pairs = _mm256_maddubs_epi16(
        _mm256_abs_epi8(bytes),
        _mm256_sign_epi8(reinterpret_cast<__m256i>(b), bytes));
    return sum + reinterpret_cast<VecT<int32_t>>(
                     _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
}
#elif defined(__x86_64__)
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> Dot(VecT<int32_t> sum, VecT<int32_t> a,
                                     VecT<int32_t> b) {
  const auto bytes = reinterpret_cast<__m128i>(a);
  const __m128i pairs = _mm_maddubs_epi16(
      _mm_abs_epi8(bytes), _mm_sign_epi8(reinterpret_cast<__m128i>(b), bytes));
  return sum + reinterpret_cast<VecT<int32_t>>(
                   _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}
#else
template <bool kFused>
TF_LSTM_OPS_INLINE VecT<int32_t> Dot(VecT<int32_t> sum, VecT<int32_t> a,
                                     VecT<int32_t> b) {
  if constexpr (kFused) {
#if defined(__linux__)
    asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
        : "+w"(sum)
        : "w"(a), "w"(b));
#else
    asm("sdot.4s %0, %1, %2" : "+w"(sum) : "w"(a), "w"(b));
#endif
    return sum;
  } else {
    const auto x = reinterpret_cast<int8x16_t>(a);
    const auto y = reinterpret_cast<int8x16_t>(b);
    const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y));
    const int16x8_t high = vmull_high_s8(x, y);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
  }
}
#endif

typedef int8_t ByteVector __attribute__((vector_size(kVectorBytes / 4)));

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

// Rounds a row x [width] to a row of A. A row that is not finite becomes NaN
// times zeros. Elements below kLeast in a row of such elements become zero.
inline TF_LSTM_OPS_NOINLINE void RoundToQuads(const float* x, int64_t width,
                                              WeightFormat format, float* to) {
  const int32_t offset = FactorOffset(format);
  constexpr float kLeast = 0x1p-100F;  // 127 / kLeast is finite
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr float kMost = 127;
  const int32_t bits = LargestBits(x, width);
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  auto* bytes = reinterpret_cast<int8_t*>(to + 1);
  if (bits >= kInfinity || largest < kLeast) {
    *to = bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN() : 0;
    std::memset(bytes, offset, (QuadFactorWords(width) - 1) * sizeof(float));
    return;
  }
  *to = largest / kMost;
  // The sum has the integer, rounded to even, in its lower bits.
  const VecT<float> factor = Broadcast(kMost / largest),
                    rounder = Broadcast(0x1.8p23F);
  for (int64_t k = 0; k < width; k += kLanes<float>) {
    const VecT<float> sum = LoadN(x + k, width - k) * factor + rounder;
    const auto q = __builtin_convertvector(
        reinterpret_cast<VecT<int32_t>>(sum) + offset, ByteVector);
    std::memcpy(bytes + k, &q, sizeof q);
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
  for (int64_t u = 0; u < columns; u += kL) {
    float* packed = to.data + u / kL * to.distance;
    const int64_t width = Min(columns - u, kL);
    VecT<int32_t> total = {};
    for (int64_t k = 0; k < depth; k += 4) {
      uint32_t words[kL] = {};
      int32_t sums[kL] = {};
      for (int64_t r = 0; r < Min(4, depth - k); ++r) {
        const int8_t* row = from + (k + r) * row_stride + u;
        for (int64_t n = 0; n < width; ++n) {
          words[n] |= uint32_t{static_cast<uint8_t>(row[n])} << 8 * r;
          sums[n] += row[n];
        }
      }
      std::memcpy(packed + (kHeadRows + k / 4) * to.stride, words,
                  sizeof words);
      total += Load(sums);
    }
    Store(LoadN(scales + u, width), packed);
    total *= -FactorOffset(to.format);
    std::memcpy(packed + to.stride, &total, sizeof total);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_QUADS_H_
