// Activation: the activation functions of LSTM cells, with their derivatives.
// C++ has this list of them only: ops take the names of their attributes from
// it, and functions.h adds those that only sessions have. CONTRIBUTING.md says
// what a new function needs. Device code includes this header.
#ifndef TF_LSTM_OPS_CORE_ACTIVATION_H_
#define TF_LSTM_OPS_CORE_ACTIVATION_H_

#include <array>
#include <cstdint>

#if !defined(__CUDACC__)
#include <cstddef>
#include <string_view>
#include <type_traits>
#endif

#include "core/gate_order.h"
#include "core/macros.h"

// F(name, text) for each function, with the names and definitions of Keras 3:
//   linear        z
//   relu          max(z, 0)
//   tanh          tanh(z)
//   sigmoid       1 / (1 + exp(-z))
//   hard_sigmoid  z / 6 + 1/2, clipped to [0, 1]
//   hard_tanh     z, clipped to [-1, 1]
//   softsign      z / (1 + |z|)
//   elu           z if positive, else exp(z) - 1
//   leaky_relu    z if positive, else z / 5
//   silu          z / (1 + exp(-z))
//   gelu          z (1 + erf(z / sqrt(2))) / 2
#define TF_LSTM_OPS_ACTIVATIONS(F) \
  F(kLinear, "linear")             \
  F(kRelu, "relu")                 \
  F(kTanh, "tanh")                 \
  F(kSigmoid, "sigmoid")           \
  F(kHardSigmoid, "hard_sigmoid")  \
  F(kHardTanh, "hard_tanh")        \
  F(kSoftsign, "softsign")         \
  F(kElu, "elu")                   \
  F(kLeakyRelu, "leaky_relu")      \
  F(kSilu, "silu")                 \
  F(kGelu, "gelu")

namespace tf_lstm_ops {

#define TF_LSTM_OPS_ACTIVATION_NAME(name, text) name,
enum class Activation : uint8_t {
  TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_ACTIVATION_NAME)
  // How many are in the list.
  kCount,
  // z / 5 + 1/2, clipped to [0, 1]: ONNX's and MPSGraph's hard_sigmoid
  // (docs/reference/mpsgraph.md).
  kHardSigmoidFifth = kCount,
  // Those of ONNX's recurrent nodes with alpha = a and beta = b. They have no
  // derivatives. The numbers are those of a session's file.
  kAffine = 64,      // a z + b
  kScaledTanh,       // a tanh(b z)
  kHardSigmoidWith,  // a z + b, clipped to [0, 1]
  kThresholdedRelu,  // z if z > a, else 0
  kEluWith,          // z if positive, else a (exp(z) - 1)
  kLeakyReluWith,    // z if positive, else a z
  kSoftplus,         // log(1 + exp(z))
  kEndWithNumbers,
};
#undef TF_LSTM_OPS_ACTIVATION_NAME

#if !defined(__CUDACC__)
// The function of this name in the list; kLinear if there is none.
inline Activation ActivationNamed(std::string_view name) {
#define TF_LSTM_OPS_NAMED(activation, text) \
  if (name == (text)) return Activation::activation;
  TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_NAMED)
#undef TF_LSTM_OPS_NAMED
  return Activation::kLinear;
}
#endif

// The alpha and beta of a function.
struct ActivationNumbers {
  double a = 0, b = 0;
};

// The activations of the four gates, and of the cell state: co = state(cs).
struct LstmActivations {
  std::array<Activation, kMaxPreActivations> gate = {
      Activation::kSigmoid, Activation::kTanh, Activation::kSigmoid,
      Activation::kSigmoid};  // by LstmGate
  Activation state = Activation::kTanh;
  ActivationNumbers numbers[3];  // of the gates, the candidate, the state
  double bound =
      0;  // arguments are clipped to [-bound, bound]; 0: they are not
  // Whether f is 1 - i. Read by cells with SelectedActivations, forward only.
  bool couples_forget_gate = false;
};

// Whether the derivative depends on the argument, because the function takes a
// value more than once.
TF_LSTM_OPS_DEVICE constexpr bool NeedsArgument(Activation activation) {
  return activation == Activation::kSilu || activation == Activation::kGelu;
}

// The functions. Math as in lstm_cell.h. CUDA's device code has those of
// MPSGraph only.
template <class Math>
struct ActivationMath {
  using V = typename Math::Value;

  struct ValueAndSlope {
    V value, slope;
  };

  // The value at `z`. Not inlined: a cell calls it five times.
  static TF_LSTM_OPS_NOINLINE V Activate(Activation activation, V z,
                                         ActivationNumbers with = {}) {
    return ActivateInline(activation, z, with);
  }
  // The same, for a function that the compiler knows.
  static TF_LSTM_OPS_INLINE V
  ActivateInline(Activation activation, V z,
                 [[maybe_unused]] ActivationNumbers with = {}) {
    const V zero = {}, one = zero + 1;
    switch (activation) {
      case Activation::kRelu:
        return Math::Max(z, zero);
      case Activation::kTanh:
        return Math::Tanh(z);
      case Activation::kSigmoid:
        return Math::Sigmoid(z);
      case Activation::kHardSigmoidFifth:
        return Math::Min(Math::Max((2 * z + 5) / 10, zero), one);
#if !defined(__CUDACC__)
      case Activation::kHardSigmoid:
        return Math::Min(Math::Max((z + 3) / 6, zero), one);
      case Activation::kHardTanh:
        return Math::Min(Math::Max(z, -one), one);
      case Activation::kSoftsign:
        return z / (1 + Abs(z));
      case Activation::kElu:
        return Math::IfPositive(z, z, ExpMinusOne(Math::Min(z, zero)));
      case Activation::kLeakyRelu:
        return Math::IfPositive(z, z, z / 5);
      case Activation::kSilu:
        return z * Math::Sigmoid(z);
      case Activation::kGelu:
        return z * NormalCdf(z);
      case Activation::kAffine:
        return z * Constant(with.a) + Constant(with.b);
      case Activation::kScaledTanh:
        return Constant(with.a) * Math::Tanh(z * Constant(with.b));
      case Activation::kHardSigmoidWith:
        return Math::Min(
            Math::Max(z * Constant(with.a) + Constant(with.b), zero), one);
      case Activation::kThresholdedRelu:
        return Math::IfPositive(z - Constant(with.a), z, zero);
      case Activation::kEluWith:
        return Math::IfPositive(
            z, z, Constant(with.a) * ExpMinusOne(Math::Min(z, zero)));
      case Activation::kLeakyReluWith:
        return Math::IfPositive(z, z, z * Constant(with.a));
      case Activation::kSoftplus:
        return Softplus(z);
#endif
      default:
        return z;  // kLinear
    }
  }

  // `z` clipped to [-bound, bound]; as it is where the bound is 0. NaN stays.
  static TF_LSTM_OPS_INLINE V Bounded(V z, [[maybe_unused]] double bound) {
#if !defined(__CUDACC__)
    if (bound > 0) {
      return Math::Min(Math::Max(z, Constant(-bound)), Constant(bound));
    }
#endif
    return z;
  }

  // The value and the derivative from what a forward pass saves: the argument
  // if NeedsArgument(activation), else the value. The derivative at a kink is
  // 0, or that of TensorFlow's function.
  static TF_LSTM_OPS_DEVICE ValueAndSlope Restore(Activation activation,
                                                  V saved) {
    const V zero = {}, one = zero + 1, y = saved;
    switch (activation) {
      case Activation::kRelu:
        return {y, Math::IfPositive(y, one, zero)};
      case Activation::kTanh:
        return {y, 1 - y * y};
      case Activation::kSigmoid:
        return {y, y - y * y};
      case Activation::kHardSigmoidFifth:
        return {y, Math::IfPositive(y, Math::IfPositive(1 - y, one / 5, zero),
                                    zero)};
#if !defined(__CUDACC__)
      case Activation::kHardSigmoid:
        return {y, Math::IfPositive(y, Math::IfPositive(1 - y, one / 6, zero),
                                    zero)};
      case Activation::kHardTanh:
        return {y, Math::IfPositive(1 - Abs(y), one, zero)};
      case Activation::kSoftsign:
        return {y, (1 - Abs(y)) * (1 - Abs(y))};
      case Activation::kElu:
        return {y, Math::IfPositive(y, one, y + 1)};
      case Activation::kLeakyRelu:
        return {y, Math::IfPositive(y, one, one / 5)};
      case Activation::kSilu: {
        const V s = Math::Sigmoid(saved);
        return {saved * s, s + saved * s * (1 - s)};
      }
      case Activation::kGelu: {
        const V cdf = NormalCdf(saved);
        const V density =
            Constant(0.39894228040143267794) * ExpOfMinus(saved * saved / 2);
        return {saved * cdf, cdf + saved * density};
      }
#endif
      default:
        return {y, one};  // kLinear
    }
  }

#if !defined(__CUDACC__)
 private:
  static TF_LSTM_OPS_INLINE V Constant(double value) {
    if constexpr (std::is_arithmetic_v<V>) {
      return static_cast<V>(value);
    } else {
      const V zero = {};
      return zero + static_cast<std::decay_t<decltype(zero[0])>>(value);
    }
  }
  static TF_LSTM_OPS_INLINE V Abs(V z) { return Math::Max(z, -z); }

  // e^z - 1 for z <= 0, as tanh(z/2) / sigmoid(-z), which has no cancellation.
  static TF_LSTM_OPS_INLINE V ExpMinusOne(V z) {
    return Math::Tanh(z / 2) / Math::Sigmoid(-z);
  }
  // log(1 + e^z), number by number by the C library.
  static TF_LSTM_OPS_INLINE double SoftplusOf(double z) {
    return (z > 0 ? z : 0) + __builtin_log1p(__builtin_exp(-__builtin_fabs(z)));
  }
  static V Softplus(V z) {
    if constexpr (std::is_arithmetic_v<V>) {
      return static_cast<V>(SoftplusOf(z));
    } else {
      using T = std::decay_t<decltype(z[0])>;
      for (size_t k = 0; k < sizeof(V) / sizeof(T); ++k) {
        z[k] = static_cast<T>(SoftplusOf(z[k]));
      }
      return z;
    }
  }
  // e^-z for z >= 0, as sigmoid(-z) / sigmoid(z).
  static TF_LSTM_OPS_INLINE V ExpOfMinus(V z) {
    return Math::Sigmoid(-z) / Math::Sigmoid(z);
  }

  // The distribution function of the normal distribution, erfc(-z/sqrt(2)) / 2.
  // With x = |z|/sqrt(2) and t = 2 / (2 + x), erfc(x) = t e^(p(2t-1) - x^2). p
  // is a Chebyshev series, computed with mpmath; without its further terms the
  // relative error is below 1e-16. Clenshaw's recurrence adds it up.
  static V NormalCdf(V z) {
    constexpr double kSeries[] = {
        -1.30265371978170943 / 2, 6.4196979235649026e-1,
        1.94764732041858363e-2,   -9.56151478680863164e-3,
        -9.46595344482036866e-4,  3.66839497852761452e-4,
        4.25233248069077716e-5,   -2.02785781125342432e-5,
        -1.62429000464702551e-6,  1.3036558355805232e-6,
        1.56264417220661432e-8,   -8.52380959149265425e-8,
        6.5290544390988515e-9,    5.05934349555146894e-9,
        -9.91364156493033087e-10, -2.27365122293183586e-10,
        9.6467911020155268e-11,   2.39403808303911474e-12,
        -6.8860275264975534e-12,  8.94487927309072572e-13,
        3.13092139934295808e-13,  -1.12708223613672524e-13,
        3.81090525518923206e-16,  7.10609761360923699e-15,
        -1.5230282014571043e-15,  -9.457494571291234e-17,
        1.21023718922427899e-16,  -2.81666308774717697e-17};
    constexpr int kTerms = sizeof(kSeries) / sizeof(kSeries[0]);
    const V x = Abs(z) * Constant(0.70710678118654752440);
    const V t = 2 / (2 + x), y = 2 * t - 1;
    V next = {}, sum = {};
    for (int k = kTerms - 1; k > 0; --k) {
      const V term = 2 * y * sum - next + Constant(kSeries[k]);
      next = sum;
      sum = term;
    }
    const V p = y * sum - next + Constant(kSeries[0]);
    // x^2 - p is positive: at most erfc(0) = 1.
    const V tail = t * ExpOfMinus(x * x - p) / 2;
    return Math::IfPositive(z, 1 - tail, tail);
  }
#endif
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_ACTIVATION_H_
