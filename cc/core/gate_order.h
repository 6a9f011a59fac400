// GateOrder: the position of each gate's block of H columns in a weight matrix
// or a bias.
#ifndef TF_LSTM_OPS_CORE_GATE_ORDER_H_
#define TF_LSTM_OPS_CORE_GATE_ORDER_H_

#include <array>

namespace tf_lstm_ops {

// The gate pre-activations of a step, in the package's own order.
//
// LSTM, gate order ICFO: input gate, cell candidate, forget gate, output gate.
enum LstmGate { kGateI = 0, kGateC = 1, kGateF = 2, kGateO = 3 };
// GRU: the candidate's input term, reset gate, update gate, the candidate's
// recurrent term. The first three have input weights, the last three have
// recurrent weights. A ResetBeforeGruCell has the first three only.
enum GruPreActivation { kGateN = 0, kGateR = 1, kGateU = 2, kGateNh = 3 };

constexpr int kMaxPreActivations = 4;
// With layer normalisation the parts of x and of h are pre-activations of their
// own.
constexpr int kMaxParts = 2 * kMaxPreActivations;

struct GateOrder {
  // block[k] is the position of the block of gate pre-activation k in the
  // weights. Both terms of a GRU's candidate have the same block. The CPU
  // engine sets the elements behind the first four for the cells that have
  // more.
  std::array<int, kMaxParts> block;
};

// LSTMBlockCell, BlockLSTM: i, c, f, o.
inline constexpr GateOrder kOrderICFO{{0, 1, 2, 3}};
// BlockLSTMV2, Keras, cuDNN: i, f, c, o.
inline constexpr GateOrder kOrderIFCO{{0, 2, 1, 3}};
// GRU in cuDNN: reset, update, candidate.
inline constexpr GateOrder kOrderRUN{{2, 0, 1, 2}};
// GRU in Keras: update, reset, candidate.
inline constexpr GateOrder kOrderURN{{2, 1, 0, 2}};
// Vanilla RNN: one gate.
inline constexpr GateOrder kOrderSingle{{0, 0, 0, 0}};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GATE_ORDER_H_
