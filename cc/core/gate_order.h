// GateOrder: where each gate's block of H columns stands in a weight matrix or
// a bias.
#ifndef TF_LSTM_OPS_CORE_GATE_ORDER_H_
#define TF_LSTM_OPS_CORE_GATE_ORDER_H_

#include <array>

namespace tf_lstm_ops {

// The parts of a step's pre-activation, in the engine's own order.
//
// An LSTM's, ICFO: input gate, cell candidate, forget gate, output gate.
enum LstmPart { kPartI = 0, kPartC = 1, kPartF = 2, kPartO = 3 };
// A GRU's: the candidate's part that comes from the input, reset gate, update
// gate, the candidate's part that comes from the previous output. The first
// three have input weights, the last three recurrent ones.
enum GruPart { kPartN = 0, kPartR = 1, kPartU = 2, kPartNh = 3 };

constexpr int kMaxParts = 4;

struct GateOrder {
  std::array<int, kMaxParts> block;  // block[part]: its position in the weights
};

// LSTMBlockCell, BlockLSTM: i, c, f, o.
inline constexpr GateOrder kOrderICFO{{0, 1, 2, 3}};
// BlockLSTMV2, Keras, cuDNN: i, f, c, o.
inline constexpr GateOrder kOrderIFCO{{0, 2, 1, 3}};
// A GRU in cuDNN: reset, update, candidate.
inline constexpr GateOrder kOrderRUN{{2, 0, 1, 2}};
// A GRU in Keras: update, reset, candidate.
inline constexpr GateOrder kOrderURN{{2, 1, 0, 2}};
// A cell of one gate.
inline constexpr GateOrder kOrderPlain{{0, 0, 0, 0}};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GATE_ORDER_H_
