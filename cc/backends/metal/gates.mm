#include "backends/metal/gates.h"

namespace tf_lstm_ops::metal {

Value GateBlock(const Value& all, int axis, int gates, const GateOrder& order, int gate) {
  if (all.is_scalar()) return all;
  const int64_t width = all.dim(axis) / gates;
  return Slice(all, axis, order.block[gate] * width, width);
}

Value JoinGates(const std::array<Value, kMaxPreActivations>& blocks, int axis,
                const GateOrder& order) {
  if (blocks[0].is_scalar()) return blocks[0];
  Values ordered(kMaxPreActivations);
  for (int gate = 0; gate < kMaxPreActivations; ++gate) ordered[order.block[gate]] = blocks[gate];
  return Concat(ordered, axis);
}

}  // namespace tf_lstm_ops::metal
