// VecMath<T>: the transcendental functions of the cell, for LstmCell.
//
// float: own polynomials, errors at most 2.5 ULP (tests/core measures them).
// double: the C library, lane by lane; there is no fast path for double.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VEC_MATH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VEC_MATH_H_

#include <cmath>

#include "backends/cpu/simd/vec.h"

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

  // e^x for x <= 0.
  static TF_LSTM_OPS_INLINE Value ExpOfNegative(Value x) {
    x = Max(x, Broadcast(-104.0f));  // e^-104 is below the least subnormal
    const Reduced at = Reduce(x, kBias);
    const Value e = at.exp_minus_1 + 1.0f;
#if defined(__AVX512F__)
    return _mm512_maskz_scalef_ps(0xffff, e, at.n);
#else
    // n + kBias is added to the exponent of e. The product with 2^-kBias rounds
    // once, also where it is subnormal. x * 0 passes on NaN.
    const Value scaled = FromBits(Bits(e) + (Bits(at.biased_n) << 23));
    return Fma(x, Value{}, scaled * Broadcast(0x1p-64f));
#endif
  }

  // 1 / (1 + e^-x), by e^-|x| so that neither tail loses its bits.
  static TF_LSTM_OPS_INLINE Value Sigmoid(Value x) {
    const Value e = ExpOfNegative(FromBits(Bits(x) | Bits(Broadcast(-0.0f))));
    return (x < 0 ? e : Broadcast(1.0f)) / (1.0f + e);
  }

  // Of |x|, x's sign put back: with y = e^-2|x| - 1 it is -y / (y + 2). y has
  // no cancellation, since e^r - 1 is computed before it is scaled. The
  // quotient is corrected for the rounding of y + 2, whose effect is largest
  // near 1.
  static TF_LSTM_OPS_INLINE Value Tanh(Value x) {
    const Int sign = Bits(x) & Bits(Broadcast(-0.0f));
    const Value magnitude = FromBits(Bits(x) ^ sign);
    // tanh(10) rounds to 1. Max passes on NaN.
    const Reduced at = Reduce(Max(-2.0f * magnitude, Broadcast(-20.0f)), 0);
    const Value scale =
        FromBits((Bits(at.biased_n) << 23) + Bits(Broadcast(1.0f)));
    const Value y = Fma(scale, at.exp_minus_1, scale - 1.0f);
    const Value sum = y + 2.0f;
    const Value error = (sum - 2.0f) - y;  // of the sum, exact
    // 0 - y is not -0, which keeps tanh(0) = 0.
    const Value quotient = (0.0f - y) / sum;
    return FromBits(Bits(Fma(quotient, error, quotient)) ^ sign);
  }

 private:
  static constexpr int kBias = 64;

  // x = n ln 2 + r with |r| <= ln(2)/2.
  struct Reduced {
    Value n, biased_n;  // the lower bits of biased_n are n + bias
    Value exp_minus_1;  // e^r - 1
  };
  static TF_LSTM_OPS_INLINE Reduced Reduce(Value x, int bias) {
    Reduced at;
    // Adding it rounds to an integer.
    const Value rounder = Broadcast(0x1.8p23f + static_cast<float>(bias));
    at.biased_n = Fma(x, Broadcast(0x1.715476p0f), rounder);
    at.n = at.biased_n - rounder;
    Value r = Fma(at.n, Broadcast(-0x1.63p-1f), x);  // ln 2, upper bits
    r = Fma(at.n, Broadcast(0x1.bd0106p-13f), r);    // and the rest
    Value p = Broadcast(0x1.a1b8c4p-13f);            // (e^r - 1 - r) / r^2
    p = Fma(p, r, Broadcast(0x1.6d9736p-10f));
    p = Fma(p, r, Broadcast(0x1.11107cp-7f));
    p = Fma(p, r, Broadcast(0x1.555480p-5f));
    p = Fma(p, r, Broadcast(0x1.555556p-3f));
    p = Fma(p, r, Broadcast(0x1p-1f));
    at.exp_minus_1 = Fma(p, r * r, r);
    return at;
  }

  static TF_LSTM_OPS_INLINE Int Bits(Value value) {
    Int bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  static TF_LSTM_OPS_INLINE Value FromBits(Int bits) {
    Value value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
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

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VEC_MATH_H_
