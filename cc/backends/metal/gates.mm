#include "backends/metal/gates.h"

#include "core/lstm_cell.h"

namespace tf_lstm_ops::metal {
namespace {

constexpr LstmRow kRowOfPart[] = {kRowI, kRowCi, kRowF, kRowO};
static_assert(kPartI == 0 && kPartC == 1 && kPartF == 2 && kPartO == 3);

}  // namespace

Value GateBlock(const Value& all, int axis, int gates, const GateOrder& order, int part) {
  if (all.is_number()) return all;
  const int64_t width = all.dim(axis) / gates;
  return Slice(all, axis, order.block[part] * width, width);
}

Value JoinGates(const std::array<Value, kMaxParts>& parts, int axis, const GateOrder& order) {
  if (parts[0].is_number()) return parts[0];
  Values blocks(kMaxParts);
  for (int p = 0; p < kMaxParts; ++p) blocks[order.block[p]] = parts[p];
  return Concat(blocks, axis);
}

Value ZState(const StepValues& steps, const GateOrder& order) {
  std::array<Value, kMaxParts> gates;
  for (int p = 0; p < kMaxParts; ++p) gates[p] = steps[kRowOfPart[p]];
  return JoinGates(gates, 2, order);
}

void SetZState(const Value& z, const GateOrder& order, StepValues* steps) {
  for (int p = 0; p < kMaxParts; ++p) {
    (*steps)[kRowOfPart[p]] = GateBlock(z, 2, kMaxParts, order, p);
  }
}

}  // namespace tf_lstm_ops::metal
