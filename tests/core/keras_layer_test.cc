// Tests of core/keras_layer.h.
#include "core/keras_layer.h"

#include <cstdint>
#include <vector>

#include "harness.h"

namespace tf_lstm_ops {
namespace {

TEST(KerasConfigOfALstm) {
  KerasLayer layer;
  layer.cell_clip = 0.5F;
  layer.proj_clip = 0.25F;
  RnnConfig config = KerasConfig(layer);
  CHECK(config.cell == CellKind::kLstm);
  CHECK(config.gate_order.block == kOrderIFCO.block);
  CHECK_EQ(config.cell_clip, 0.5);
  CHECK_EQ(config.proj_clip, 0.25);
  layer.options.activations =
      KerasActivations(Activation::kRelu, Activation::kElu);
  config = KerasConfig(layer);
  CHECK(config.cell == CellKind::kActivationLstm);
  const LstmActivations& activations = config.options.activations;
  CHECK(activations.state == Activation::kRelu);
  for (const LstmGate gate : {kGateI, kGateC, kGateF, kGateO}) {
    CHECK(activations.gate[gate] ==
          (gate == kGateC ? Activation::kRelu : Activation::kElu));
  }
}

TEST(KerasConfigOfOtherCells) {
  KerasLayer layer;
  layer.options.layer_norm.epsilon = 0.25;
  for (const CellKind cell :
       {CellKind::kGru, CellKind::kResetBeforeGru, CellKind::kLayerNormLstm,
        CellKind::kLayerNormGru}) {
    layer.cell = cell;
    const RnnConfig config = KerasConfig(layer);
    CHECK(config.cell == cell);
    const GateOrder& order = IsLstm(cell) ? kOrderIFCO : kOrderURN;
    CHECK(config.gate_order.block == order.block);
    CHECK_EQ(config.options.layer_norm.epsilon, 0.25);
  }
  layer.options.activations =
      KerasActivations(Activation::kTanh, Activation::kHardSigmoid);
  layer.cell = CellKind::kGru;
  CHECK(KerasConfig(layer).cell == CellKind::kActivationGru);
  layer.cell = CellKind::kResetBeforeGru;
  CHECK(KerasConfig(layer).cell == CellKind::kActivationResetBeforeGru);
}

TEST(KerasSequencesHaveTheOrderThatIsAskedFor) {
  KerasLayer layer;
  layer.go_backwards = true;
  CHECK(KerasSequence(layer, 0, 2, 3, nullptr).reversed);
  CHECK(KerasSequence(layer, 0, 2, 3, nullptr).in_order_of_computation);
  layer.go_backwards = false;
  layer.in_order_of_computation = false;
  CHECK(!KerasSequence(layer, 0, 2, 3, nullptr).reversed);
  const Sequence second = KerasSequence(layer, 1, 2, 3, nullptr);
  CHECK(second.reversed && !second.in_order_of_computation);
  CHECK(!second.time_major && second.batch == 2 && second.time == 3);
  CHECK_EQ(second.steps, 3);
  // The last output is that of the first time step.
  layer.return_sequences = false;
  CHECK(KerasSequence(layer, 1, 2, 3, nullptr).in_order_of_computation);
}

TEST(ViewsOfTheWeightsOfAKerasLayer) {
  RnnConfig config;
  config.input_size = 3;
  config.cell_size = 4;
  config.hidden_size = 2;
  std::vector<float> values(100);
  KerasWeights<const float> weights;
  weights.kernel = values.data();
  weights.peephole = values.data() + 50;
  RnnWeights<const float> views = ViewsOf(weights, config);
  CHECK_EQ(views.input.Block(1), values.data() + 4);
  CHECK_EQ(views.input.row_stride, 16);
  CHECK(!views.recurrent && !views.projection);
  CHECK_EQ(views.peephole[kGateI], values.data() + 50);
  CHECK_EQ(views.peephole[kGateF], values.data() + 54);
  CHECK_EQ(views.peephole[kGateO], values.data() + 58);
  CHECK(views.peephole[kGateC] == nullptr);
  weights.peephole = nullptr;
  weights.projection = values.data();
  views = ViewsOf(weights, config);
  CHECK(!views.has_peephole());
  CHECK_EQ(views.projection.row_stride, 2);
}

TEST(LastStepsOfKerasLayers) {
  const std::vector<float> h = {1, 2, 3, 4, 5, 6, 7, 8};  // [2, 2, 2]
  std::vector<float> rows(6, -1);
  CopyLastSteps(h.data(), 2, 2, 2, rows.data(), 3);
  CHECK(rows == (std::vector<float>{3, 4, -1, 7, 8, -1}));
  CopyLastSteps(h.data(), 2, 0, 2, rows.data(), 3);
  CHECK(rows == (std::vector<float>{0, 0, -1, 0, 0, -1}));
}

}  // namespace
}  // namespace tf_lstm_ops
