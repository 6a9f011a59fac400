// GateOrder: where each gate's block of H columns stands in a weight matrix or
// a bias.
#ifndef TF_LSTM_OPS_CORE_GATE_ORDER_H_
#define TF_LSTM_OPS_CORE_GATE_ORDER_H_

#include <array>
#include <cstdint>

namespace tf_lstm_ops {

// The engine's own order, ICFO: input gate, cell candidate, forget gate, output
// gate.
enum Gate { kGateI = 0, kGateC = 1, kGateF = 2, kGateO = 3, kGates = 4 };

struct GateOrder {
  std::array<int, kGates> block;  // block[gate]: its position among the four

  // First column of a gate.
  int64_t Offset(int gate, int64_t cell_size) const {
    return block[gate] * cell_size;
  }
};

inline constexpr GateOrder kOrderICFO{
    {0, 1, 2, 3}};  // LSTMBlockCell, BlockLSTM
inline constexpr GateOrder kOrderIFCO{
    {0, 2, 1, 3}};  // BlockLSTMV2, Keras, cuDNN

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GATE_ORDER_H_
