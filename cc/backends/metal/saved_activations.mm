#include "backends/metal/saved_activations.h"

#include "backends/metal/gates.h"
#include "core/lstm_cell.h"

namespace tf_lstm_ops::metal {

Value PackActivations(const GraphActivations& saved, CellKind cell) {
  const int count = SavedCount(cell);
  if (count == 0 || saved[0].is_scalar()) return 0;
  const Value rows = Concat(Values(saved.begin(), saved.begin() + count), 2);
  return Reshape(rows, {rows.dim(0) * rows.dim(1) * rows.dim(2)});
}

GraphActivations UnpackActivations(const Value& packed, const RnnConfig& config,
                                   const Sequence& sequence) {
  const int count = SavedCount(config.cell);
  const Value rows = Reshape(packed, {sequence.time, sequence.batch, count * config.cell_size});
  GraphActivations saved;
  for (int k = 0; k < count; ++k) {
    saved[k] = Slice(rows, 2, k * config.cell_size, config.cell_size);
  }
  return saved;
}

Value JoinZState(const GraphActivations& saved, const GateOrder& order) {
  std::array<Value, kMaxPreActivations> gates;
  for (int gate = 0; gate < kMaxPreActivations; ++gate) gates[gate] = saved[kSavedOfGate[gate]];
  return JoinGates(gates, 2, order);
}

void SplitZState(const Value& z_state, const GateOrder& order, GraphActivations* saved) {
  for (int gate = 0; gate < kMaxPreActivations; ++gate) {
    (*saved)[kSavedOfGate[gate]] = GateBlock(z_state, 2, kMaxPreActivations, order, gate);
  }
}

}  // namespace tf_lstm_ops::metal
