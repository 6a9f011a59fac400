// Tests of core/gate_order.h and of the layouts of weights.
#include <sstream>
#include <vector>

#include "core/gate_order.h"
#include "core/layer_direction.h"
#include "harness.h"

namespace tf_lstm_ops {
namespace {

// Column of a gate in weights [K, gates * H] and its place in [gates, H, K].
TEST(GateMatricesFindAGateInEitherLayout) {
  double data[24] = {};
  constexpr int64_t kInputs = 2, kUnits = 3;
  const auto by_input = ByInput(data, 4, kUnits);
  const auto by_unit = ByUnit(data, kInputs, kUnits);
  const int f = kOrderIFCO.block[kGateF];
  CHECK_EQ(by_input.Block(f) + by_input.row_stride - data, 12 + 3);
  CHECK_EQ(by_input.column_stride, 1);
  CHECK_EQ(by_unit.Block(f) + by_unit.column_stride - data, 6 + 2);
  CHECK_EQ(by_unit.row_stride, 1);
}

TEST(GateOrders) {
  const auto order = [](const GateOrder& gates, std::vector<int> parts) {
    for (int& part : parts) part = gates.block[part];
    return parts;
  };
  const std::vector<int> ifco = {kGateI, kGateF, kGateC, kGateO};
  CHECK(order(kOrderIFCO, ifco) == (std::vector<int>{0, 1, 2, 3}));
  CHECK(order(kOrderICFO, ifco) == (std::vector<int>{0, 2, 1, 3}));
  const std::vector<int> run = {kGateR, kGateU, kGateN};
  CHECK(order(kOrderRUN, run) == (std::vector<int>{0, 1, 2}));
  CHECK(order(kOrderURN, run) == (std::vector<int>{1, 0, 2}));
  CHECK_EQ(kOrderRUN.block[kGateNh], kOrderRUN.block[kGateN]);
  CHECK_EQ(kOrderURN.block[kGateNh], kOrderURN.block[kGateN]);
}

}  // namespace
}  // namespace tf_lstm_ops
