// Half and BFloat16: storage types of 16 bits. Arithmetic is done in float; the
// conversions round to nearest, ties to even.
#ifndef TF_LSTM_OPS_CORE_FLOAT16_H_
#define TF_LSTM_OPS_CORE_FLOAT16_H_

#include <cstdint>
#include <cstring>

namespace tf_lstm_ops {

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

// Upper half of a float: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t bits;

  static BFloat16 FromFloat(float value) {
    const uint32_t word = FloatBits(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {  // NaN stays NaN: set a bit
      return {static_cast<uint16_t>((word >> 16) | 0x40u)};
    }
    const uint32_t rounding = 0x7fffu + ((word >> 16) & 1u);
    return {static_cast<uint16_t>((word + rounding) >> 16)};
  }
  float ToFloat() const {
    return FloatFromBits(static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Half {
  uint16_t bits;

  static Half FromFloat(float value) {
    const uint32_t word = FloatBits(value);
    const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000u);
    const uint32_t magnitude = word & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
      result = 0x7e00u;  // NaN
    } else if (magnitude >= 0x477ff000u) {
      result = 0x7c00u;  // rounds past 65504: infinity
    } else if (magnitude < 0x38800000u) {
      // Below 2^-14: adding 0.5 leaves the subnormal's bits, correctly rounded,
      // in the low end of the sum, whose unit is 2^-24.
      const float sum = FloatFromBits(magnitude) + 0.5f;
      result = FloatBits(sum) - 0x3f000000u;
    } else {
      const uint32_t rounding = 0xfffu + ((magnitude >> 13) & 1u);
      result = (magnitude - 0x38000000u + rounding) >> 13;
    }
    return {static_cast<uint16_t>(sign | result)};
  }
  float ToFloat() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) {  // infinity, NaN
      return FloatFromBits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    if (magnitude < 0x400u) {  // zero, subnormal: multiples of 2^-24
      const float value = 0x1p-24f * static_cast<float>(magnitude);
      return FloatFromBits(sign | FloatBits(value));
    }
    return FloatFromBits(sign | ((magnitude << 13) + 0x38000000u));
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_FLOAT16_H_
