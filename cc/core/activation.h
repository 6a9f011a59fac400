// Activation: the activation functions of an LSTM with custom activations.
#ifndef TF_LSTM_OPS_CORE_ACTIVATION_H_
#define TF_LSTM_OPS_CORE_ACTIVATION_H_

#include <array>
#include <cstdint>

#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Values at z:
//   kNone         z
//   kRelu         max(z, 0)
//   kTanh         tanh(z)
//   kSigmoid      1 / (1 + exp(-z))
//   kHardSigmoid  z / 5 + 1/2, clipped to [0, 1]
// The names are those of Apple's MPSGraphRNNActivation. The slope of
// kHardSigmoid is ONNX's default (docs/reference/mpsgraph.md).
enum class Activation : uint8_t { kNone, kRelu, kTanh, kSigmoid, kHardSigmoid };

// The activations of the four gates, and of the cell state: co = state(cs).
struct LstmActivations {
  std::array<Activation, kMaxPreActivations> gate = {
      Activation::kSigmoid, Activation::kTanh, Activation::kSigmoid,
      Activation::kSigmoid};  // by LstmGate
  Activation state = Activation::kTanh;
};

// Returns the value of `activation` at `z`. Math as in lstm_cell.h.
template <class Math, class V = typename Math::Value>
TF_LSTM_OPS_DEVICE V Activate(Activation activation, V z) {
  const V zero = {};
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kRelu:
      return Math::Max(z, zero);
    case Activation::kTanh:
      return Math::Tanh(z);
    case Activation::kSigmoid:
      return Math::Sigmoid(z);
    case Activation::kHardSigmoid:
      return Math::Min(Math::Max((2 * z + 5) / 10, zero), zero + 1);
  }
  return z;
}

// Returns the derivative of `activation`, computed from the function's value
// `y`. The derivative at a kink is 0.
template <class Math, class V = typename Math::Value>
TF_LSTM_OPS_DEVICE V Slope(Activation activation, V y) {
  const V zero = {}, one = zero + 1;
  switch (activation) {
    case Activation::kNone:
      return one;
    case Activation::kRelu:
      return Math::IfPositive(y, one, zero);
    case Activation::kTanh:
      return 1 - y * y;
    case Activation::kSigmoid:
      return y - y * y;
    case Activation::kHardSigmoid:
      return Math::IfPositive(y, Math::IfPositive(1 - y, one / 5, zero), zero);
  }
  return one;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_ACTIVATION_H_
