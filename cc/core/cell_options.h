// CellOptions: the parameters of the cells that are not tensors. Device code
// includes this header.
#ifndef TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
#define TF_LSTM_OPS_CORE_CELL_OPTIONS_H_

#include <cstdint>

#include "core/activation.h"

namespace tf_lstm_ops {

// Values at z, with the names and the definitions of Keras 3:
//   kLinear       z
//   kRelu         max(z, 0)
//   kTanh         tanh(z)
//   kSigmoid      1 / (1 + exp(-z))
//   kHardSigmoid  z / 6 + 1/2, clipped to [0, 1]
//   kHardTanh     z, clipped to [-1, 1]
//   kSoftsign     z / (1 + |z|)
//   kElu          z if positive, else exp(z) - 1
//   kLeakyRelu    z if positive, else z / 5
//   kSilu         z / (1 + exp(-z))
//   kGelu         z (1 + erf(z / sqrt(2))) / 2
// The slope of kHardSigmoid differs from that of Activation::kHardSigmoid.
enum class UnitActivation : uint8_t {
  kLinear,
  kRelu,
  kTanh,
  kSigmoid,
  kHardSigmoid,
  kHardTanh,
  kSoftsign,
  kElu,
  kLeakyRelu,
  kSilu,
  kGelu
};

// The activation of the candidate and the cell state, and that of the gates.
struct UnitActivations {
  UnitActivation state = UnitActivation::kTanh;
  UnitActivation gate = UnitActivation::kSigmoid;
};

// Layer normalisation; layer_norm_cell.h has the equations.
struct LayerNormOptions {
  double epsilon = 0;
  // Whether the next step reads the normalised cell state.
  bool carries_normalized_state = false;
};

struct CellOptions {
  LstmActivations activations;       // read by CustomLstmCell only
  UnitActivations unit_activations;  // read by ActivationLstmCell only
  LayerNormOptions layer_norm;       // read by LayerNormCell only
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
