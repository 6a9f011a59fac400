#include "backends/metal/gates.h"

#include "core/lstm_cell.h"

namespace tf_lstm_ops::metal {
namespace {

constexpr LstmSaved kRowOfPart[] = {kSavedI, kSavedCi, kSavedF, kSavedO};
static_assert(kGateI == 0 && kGateC == 1 && kGateF == 2 && kGateO == 3);

}  // namespace

Value GateBlock(const Value& all, int axis, int gates, const GateOrder& order, int part) {
  if (all.is_number()) return all;
  const int64_t width = all.dim(axis) / gates;
  return Slice(all, axis, order.block[part] * width, width);
}

Value JoinGates(const std::array<Value, kMaxPreActivations>& parts, int axis, const GateOrder& order) {
  if (parts[0].is_number()) return parts[0];
  Values blocks(kMaxPreActivations);
  for (int p = 0; p < kMaxPreActivations; ++p) blocks[order.block[p]] = parts[p];
  return Concat(blocks, axis);
}

Value ZState(const StepValues& steps, const GateOrder& order) {
  std::array<Value, kMaxPreActivations> gates;
  for (int p = 0; p < kMaxPreActivations; ++p) gates[p] = steps[kRowOfPart[p]];
  return JoinGates(gates, 2, order);
}

void SetZState(const Value& z, const GateOrder& order, StepValues* steps) {
  for (int p = 0; p < kMaxPreActivations; ++p) {
    (*steps)[kRowOfPart[p]] = GateBlock(z, 2, kMaxPreActivations, order, p);
  }
}

}  // namespace tf_lstm_ops::metal
