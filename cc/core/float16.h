// Half and BFloat16: 16-bit storage types. Arithmetic is done in float. The
// conversions from float round to nearest, ties to even. No conversion has
// branches, so that compilers vectorise them.
#ifndef TF_LSTM_OPS_CORE_FLOAT16_H_
#define TF_LSTM_OPS_CORE_FLOAT16_H_

#include <cstdint>
#ifndef __CUDACC__
#include <cstring>
#endif

#include "core/macros.h"

namespace tf_lstm_ops {

#ifdef __CUDACC__
__device__ inline uint32_t FloatBits(float value) {
  return __float_as_uint(value);
}
__device__ inline float FloatFromBits(uint32_t bits) {
  return __uint_as_float(bits);
}
#else
inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
#endif

// Returns `yes` or `no`, computed without a branch.
TF_LSTM_OPS_DEVICE inline uint32_t Select(bool condition, uint32_t yes,
                                          uint32_t no) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}
// The same for vectors. The lanes of `condition` are 0 or -1.
template <class Condition, class Word>
TF_LSTM_OPS_DEVICE inline Word Select(Condition condition, Word yes, Word no) {
  const Word mask = reinterpret_cast<Word>(condition);
  return (yes & mask) | (no & ~mask);
}

// Upper half of a float: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t bits;

  // The bits of a float, or of a vector of them, rounded to the lower half.
  template <class Word>
  TF_LSTM_OPS_DEVICE static Word Round(Word word) {
    const Word rounded = (word + (0x7fffu + ((word >> 16) & 1u))) >> 16;
    const Word nan = (word >> 16) | 0x40u;  // a set bit keeps it NaN
    return Select((word & 0x7fffffffu) > 0x7f800000u, nan, rounded);
  }
  TF_LSTM_OPS_DEVICE static BFloat16 FromFloat(float value) {
    return {static_cast<uint16_t>(Round(FloatBits(value)))};
  }
  TF_LSTM_OPS_DEVICE float ToFloat() const {
    return FloatFromBits(static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Half {
  uint16_t bits;

  TF_LSTM_OPS_DEVICE static Half FromFloat(float value) {
    const uint32_t word = FloatBits(value);
    const uint32_t sign = (word >> 16) & 0x8000u;
    const uint32_t magnitude = word & 0x7fffffffu;
    const uint32_t rounding = 0xfffu + ((magnitude >> 13) & 1u);
    const uint32_t normal = (magnitude - 0x38000000u + rounding) >> 13;
    // Below 2^-14: the sum with 0.5 has the unit 2^-24. Its low bits are the
    // correctly rounded bits of the subnormal.
    const uint32_t subnormal =
        FloatBits(FloatFromBits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t result = Select(magnitude < 0x38800000u, subnormal, normal);
    result = Select(magnitude >= 0x477ff000u, 0x7c00u, result);  // past 65504
    result = Select(magnitude > 0x7f800000u, 0x7e00u, result);   // NaN
    return {static_cast<uint16_t>(sign | result)};
  }
  TF_LSTM_OPS_DEVICE float ToFloat() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + 0x38000000u;
    // Zero, subnormal: multiples of 2^-24.
    const uint32_t subnormal = FloatBits(
        0x1p-24f * static_cast<float>(static_cast<int32_t>(magnitude)));
    const uint32_t special = 0x7f800000u | (magnitude & 0x3ffu) << 13;
    uint32_t result = Select(magnitude < 0x400u, subnormal, normal);
    result = Select(magnitude >= 0x7c00u, special, result);  // infinity, NaN
    return FloatFromBits(sign | result);
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_FLOAT16_H_
