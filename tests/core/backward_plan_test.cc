// Tests of backends/cpu/plan/backward_plan.h: the way that each call takes, and
// how its work is divided.
#include <vector>

#include "backends/cpu/backward_pass.h"
#include "backends/cpu/plan/side_by_side.h"
#include "harness.h"

namespace tf_lstm_ops::cpu::backward_plan_test {
namespace {

// A float layer with AVX-512 on a Zen 5.
BackwardProblem Problem(int64_t batch, int64_t steps, int64_t inputs,
                        int64_t units, CellKind cell = CellKind::kLstm) {
  RnnConfig config;
  config.cell = cell;
  config.input_size = inputs;
  config.cell_size = config.hidden_size = units;
  VectorTraits traits;
  traits.lanes = 16;
  BackwardProblem p(config, traits);
  p.batch = batch;
  p.steps = steps;
  p.rows = batch * steps;
  p.caches = {48 << 10, 1 << 20, 32 << 20};
  return p;
}

// The same with one thing changed.
BackwardProblem OfZOnly(BackwardProblem p) {
  p.wants_z_grad_only = true;
  p.wants_h0_grad = false;
  return p;
}
BackwardProblem Projected(BackwardProblem p) {
  p.config.hidden_size /= 2;
  return p;
}
BackwardProblem WithoutInput(BackwardProblem p) {
  p.has_input = false;
  return p;
}
// A bfloat16 layer, on a processor that multiplies pairs or one that does not.
BackwardProblem InBFloat16(BackwardProblem p, bool dots_pairs) {
  p.config.bfloat16 = true;
  p.traits.dots_pairs = dots_pairs;
  SetFormat(&p);
  return p;
}

constexpr auto kStep = BackwardWay::kStepGradient;
constexpr auto kSequence = BackwardWay::kSequence;
constexpr auto kElements = WeightFormat::kElements;
constexpr auto kPairs = WeightFormat::kBFloat16Pairs;
constexpr auto kGru = CellKind::kGru;

struct Call {
  const char* name;
  BackwardProblem problem;
  int most_threads;
  BackwardWay way;
  int threads;
  int64_t slices = 0;
  int64_t group = 1;
  WeightFormat format = kElements;
};

std::vector<Call> Calls() {
  return {
      // One step of which dz is wanted, and no product.
      {"step", OfZOnly(Problem(1, 1, 128, 128)), 2, kStep, 1},
      {"large step", OfZOnly(Problem(64, 1, 512, 512)), 2, kStep, 2},
      {"step of bfloat16", InBFloat16(OfZOnly(Problem(4, 1, 32, 32)), true), 1,
       kStep, 1, 0, 1, kPairs},
      {"step of a GRU", OfZOnly(Problem(4, 1, 32, 32, kGru)), 1, kSequence, 1,
       0, 32},
      {"projected step", OfZOnly(Projected(Problem(4, 1, 32, 32))), 1,
       kSequence, 1, 0, 32},
      // Slices: at least 24 rows, and weights of at most 256 KiB.
      {"two slices", Problem(24, 50, 64, 64), 2, kSequence, 2, 2, 64},
      {"16 slices, one thread", Problem(256, 60, 7, 32), 1, kSequence, 1, 16,
       64},
      {"16 slices, two threads", Problem(256, 60, 7, 32), 2, kSequence, 2, 16,
       64},
      {"16 slices, 32 threads", Problem(256, 60, 7, 32), 32, kSequence, 16, 16,
       64},
      {"weights of 256 KiB", Problem(64, 50, 64, 64, kGru), 2, kSequence, 2, 4,
       64},
      {"without input", WithoutInput(Problem(64, 50, 1024, 64)), 2, kSequence,
       2, 4, 64},
      // Groups of units.
      {"23 rows", Problem(23, 50, 64, 64), 1, kSequence, 1, 0, 32},
      {"large weights", Problem(64, 25, 1024, 1024), 2, kSequence, 2, 0, 64},
      {"one row", Problem(1, 300, 24, 48), 1, kSequence, 1, 0, 48},
      {"layer-normalised", Problem(16, 9, 64, 64, CellKind::kLayerNormLstm), 1,
       kSequence, 1, 0, 32},
      {"bfloat16 by dot products", InBFloat16(Problem(64, 25, 512, 512), true),
       2, kSequence, 2, 0, 64, kPairs},
      {"bfloat16, widened", InBFloat16(Problem(64, 25, 512, 512), false), 2,
       kSequence, 2, 0, 64},
      {"no rows", Problem(0, 1, 32, 32), 1, kSequence, 1, 0, 32},
      {"no steps", Problem(4, 0, 32, 32), 1, kSequence, 1, 0, 32},
  };
}

TEST(EachBackwardCallTakesItsWay) {
  for (const Call& call : Calls()) {
    BackwardPlan plan;
    PlanBackward(&call.problem, 1, call.most_threads, &plan);
    const bool right = plan.way == call.way && plan.threads == call.threads &&
                       plan.schedule.slices() == call.slices &&
                       plan.schedule.group() == call.group &&
                       plan.format == call.format && !plan.side_by_side;
    if (!right) {
      std::fprintf(stderr, "%s: way %d, %d threads, %d slices, group %d\n",
                   call.name, static_cast<int>(plan.way), plan.threads,
                   static_cast<int>(plan.schedule.slices()),
                   static_cast<int>(plan.schedule.group()));
    }
    CHECK(right);
    CHECK(plan.way == kStep || plan.schedule.threads() == plan.threads);
  }
}

// Both directions have one plan, or each its own on all threads. The gradient
// of one step has no second direction.
TEST(BackwardDirectionsRunSideBySideWhereTheirWeightsFit) {
  for (const int64_t units : {32, 128, 4096}) {
    for (const int threads : {1, 2}) {
      const BackwardProblem problems[] = {Problem(32, 50, units, units),
                                          Problem(32, 50, units, units)};
      BackwardPlan plans[kMaxTogether];
      PlanBackward(problems, kMaxTogether, threads, plans);
      CHECK(plans[0].side_by_side == (threads == 2 && units < 4096));
      CHECK(plans[1].side_by_side == plans[0].side_by_side);
    }
  }
}

// A call that wants dz of one step only.
struct StepCall {
  double number = 0;
  LayerBackward<double> layer;

  StepCall() {
    layer.config.input_size = layer.config.cell_size =
        layer.config.hidden_size = 1;
    layer.sequence.batch = layer.sequence.time = layer.sequence.steps = 1;
    layer.saved.Set(kSavedCo, &number, 1);
    layer.z_grad = &number;
  }
};

TEST(OtherGradientsNeedASequence) {
  const StepCall step;
  CHECK(WantsZGradOnly(step.layer));
  double wanted[1] = {};
  const bool masked[1] = {true};
  const auto differs = [&](const auto& change) {
    LayerBackward<double> layer = step.layer;
    change(&layer);
    CHECK(!WantsZGradOnly(layer));
  };
  using Layer = LayerBackward<double>*;
  differs([&](Layer l) { l->h0_grad = {wanted, 1}; });
  differs([&](Layer l) { l->x_grad = wanted; });
  differs([&](Layer l) { l->weights_grad.input = ByInput(wanted, 4, 1); });
  differs([&](Layer l) { l->weights_grad.recurrent = ByInput(wanted, 4, 1); });
  differs([&](Layer l) { l->weights_grad.input_bias = wanted; });
  differs([&](Layer l) { l->weights_grad.recurrent_bias = wanted; });
  differs([&](Layer l) { l->final_h_grad = {wanted, 1}; });
  differs([&](Layer l) { l->final_c_grad = {wanted, 1}; });
  differs([&](Layer l) { l->z_grad = nullptr; });
  differs([&](Layer l) { l->saved = {}; });
  differs([&](Layer l) { l->saved.by_packed_row = true; });
  differs([&](Layer l) { l->sequence.time = 2; });
  differs([&](Layer l) { l->sequence.steps = 0; });
  differs([&](Layer l) { l->sequence.mask = masked; });
}

// No two sizes are exchanged on the way from a call to its problem.
TEST(ABackwardProblemHasTheSizesOfItsCall) {
  Sequence sequence;
  sequence.batch = 3;
  sequence.time = sequence.steps = 5;
  const PackedSequence valid(sequence);
  const float weights[1] = {};
  LayerBackward<float> layer;
  layer.sequence = sequence;
  layer.config.cell = CellKind::kGru;  // four pre-activations
  layer.config.input_size = 7;
  layer.config.cell_size = layer.config.hidden_size = 17;
  layer.weights.input = ByInput(weights, 3, 17);
  layer.weights.recurrent = ByInput(weights, 3, 17);
  BackwardEngine<float> engine = {};
  engine.traits.lanes = 8;
  const BackwardProblem p = ProblemOf(layer, valid, engine);
  CHECK_EQ(p.batch, 3);
  CHECK_EQ(p.steps, 5);
  CHECK_EQ(p.rows, 15);
  CHECK_EQ(p.mean_rows(), 3);
  CHECK_EQ(p.input(), 7);
  CHECK_EQ(p.vectors, 3);
  CHECK_EQ(p.units(), 24);
  CHECK_EQ(p.parts(), 4);
  CHECK_EQ(p.vector_bytes(), 32);
  CHECK_EQ(p.row_bytes(), 4 * 17 * 4);
  CHECK_EQ(p.weight_bytes(), (7 + 17) * 4 * 17 * 4);
  CHECK(!p.wants_h0_grad && p.needs_h_grad() && p.multiplies());
  CHECK(!p.wants_z_grad_only && !p.has_two_phases());
  layer.weights.input = {};
  float h0_grad[1] = {};
  layer.h0_grad = {h0_grad, 17};
  const BackwardProblem without = ProblemOf(layer, valid, engine);
  CHECK_EQ(without.input(), 0);
  CHECK(without.wants_h0_grad);
}

}  // namespace
}  // namespace tf_lstm_ops::cpu::backward_plan_test
