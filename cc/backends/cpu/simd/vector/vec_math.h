// VecMath<T>: the transcendental functions of the cell, for LstmCell, and the
// exponential of floats.
//
// float: own polynomials, errors at most 2.5 ULP (tests/core measures them).
// Where sigmoid or exp is below 2^-126, its absolute error is at most 2^-126.
// double: the C library, lane by lane; there is no fast path for double.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_MATH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_MATH_H_

#include <cmath>

#include "backends/cpu/simd/vector/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
struct VecMath;

template <class T>
struct VecMathBase {
  using Value = VecT<T>;
  // NaN in `a` is passed on.
  static TF_LSTM_OPS_INLINE Value Min(Value a, Value b) {
    return b < a ? b : a;
  }
  static TF_LSTM_OPS_INLINE Value Max(Value a, Value b) {
    return a < b ? b : a;
  }
  static TF_LSTM_OPS_INLINE Value IfPositive(Value condition, Value yes,
                                             Value no) {
    return condition > 0 ? yes : no;
  }
};

template <>
struct VecMath<float> : VecMathBase<float> {
  using Int = Vec<float>::Int;

  // 1 / (1 + e^-x), both sides of the fraction times 2^-24: e^-x itself
  // overflows where the quotient is not yet 0.
  static TF_LSTM_OPS_INLINE Value Sigmoid(Value x) {
    constexpr float kScale = 0x1p-24f;
    const ExpOfMinus<1> e(Clamp(x, -104.0f, 64.0f), -24);
    return kScale / Fma(e.scale, e.minus_1, e.scale + kScale);
  }

  // Of |x|, x's sign put back: (1 - e^-2|x|) / (1 + e^-2|x|). The upper side
  // has no cancellation, since e^r - 1 is computed before it is scaled. Each
  // side is rounded on its own: errors of the upper one do not reach the lower
  // one.
  static TF_LSTM_OPS_INLINE Value Tanh(Value x) {
    const Int sign = Bits(x) & Bits(Broadcast(-0.0f));
    // tanh(10) rounds to 1.
    const ExpOfMinus<2> e(AtMost(10.0f, FromBits(Bits(x) ^ sign)), 0);
    const Value upper = Fma(-e.scale, e.minus_1, 1.0f - e.scale);
    const Value lower = Fma(e.scale, e.minus_1, 1.0f + e.scale);
    return FromBits(Bits(upper / lower) ^ sign);
  }

  // e^x. The scale is that of half or twice the result, since neither 2^128 nor
  // 2^-127 is one. It is 0 for x = -89.
  static TF_LSTM_OPS_INLINE Value Exp(Value x) {
    const Value factor = x > 0 ? Broadcast(2.0f) : Broadcast(0.5f);
    const Value exponent = x > 0 ? Broadcast(-1.0f) : Broadcast(1.0f);
    const ExpOfMinus<1> e(Clamp(-x, -89.0f, 89.0f), exponent);
    // No multiply-add: the product could be subnormal where the sum is not.
    return (e.minus_1 + 1.0f) * e.scale * factor;
  }

 private:
  // e^(-k x) 2^exponent = scale (1 + minus_1), with -k x = n ln 2 + r, |r| <=
  // ln(2)/2, scale = 2^(n + exponent) and minus_1 = e^r - 1. k is a power of
  // two, which only shifts exponents. With k = 2, x is at least 0 and the
  // result is added to 1 or subtracted from it: one part of ln 2 is as good as
  // two.
  template <int k>
  struct ExpOfMinus {
    static_assert(k == 1 || k == 2);
    Value scale, minus_1;

    TF_LSTM_OPS_INLINE ExpOfMinus(Value x, float exponent)
        : ExpOfMinus(x, Broadcast(exponent)) {}
    TF_LSTM_OPS_INLINE ExpOfMinus(Value x, Value exponent) {
      // Adding it rounds to an integer, which is in the lower bits.
      const Value rounder = exponent + (0x1.8p23f + 127);
      const Value biased = Fma(x, Broadcast(k * -0x1.715476p0f), rounder);
      scale = FromBits(Bits(biased) << 23);
      const Value n = biased - rounder;
      Value s;  // -r / k
      if constexpr (k == 1) {
        s = Fma(n, Broadcast(0x1.63p-1f), x);        // ln 2, upper bits
        s = Fma(n, Broadcast(-0x1.bd0106p-13f), s);  // and the rest
      } else {
        s = Fma(n, Broadcast(0x1.62e430p-1f / k), x);
      }
      const Value s2 = s * s;
      // (e^(-k s) - 1 + k s) / s^2, within 2^-28 of e^(-k s).
      constexpr float k2 = k * k, k3 = k2 * k, k4 = k3 * k;
      const Value p01 =
          Fma(s, Broadcast(k3 * -0x1.5554a2p-3f), Broadcast(k2 * 0x1p-1f));
      Value p = Fma(s, Broadcast(k4 * k * -0x1.123060p-7f),
                    Broadcast(k4 * 0x1.55567ep-5f));
      p = Fma(s2, Broadcast(k4 * k2 * 0x1.6b7990p-10f), p);
      p = Fma(s2, p, p01);
      minus_1 = Fma(s2, p, k == 1 ? -s : -s - s);
    }
  };

  static TF_LSTM_OPS_INLINE Int Bits(Value value) {
    return reinterpret_cast<Int>(value);
  }
  static TF_LSTM_OPS_INLINE Value FromBits(Int bits) {
    return reinterpret_cast<Value>(bits);
  }
};

template <>
struct VecMath<double> : VecMathBase<double> {
  static TF_LSTM_OPS_INLINE Value Sigmoid(Value x) {
    Value y = {};
    for (int k = 0; k < kLanes<double>; ++k) {
      const double e = ::exp(x[k] < 0 ? x[k] : -x[k]);
      y[k] = (x[k] < 0 ? e : 1.0) / (1.0 + e);
    }
    return y;
  }
  static TF_LSTM_OPS_INLINE Value Tanh(Value x) {
    Value y = {};
    for (int k = 0; k < kLanes<double>; ++k) y[k] = ::tanh(x[k]);
    return y;
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_MATH_H_
