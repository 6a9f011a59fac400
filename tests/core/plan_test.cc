// Tests of backends/cpu/plan/forward_plan.h: the way that each call takes.
#include <string>
#include <vector>

#include "backends/cpu/forward_pass.h"
#include "backends/cpu/plan/side_by_side.h"
#include "backends/cpu/plan/ways.h"
#include "backends/cpu/processor/int8_dots.h"
#include "harness.h"

namespace tf_lstm_ops::cpu::plan_test {
namespace {

// A float layer with AVX-512 on a Zen 5.
ForwardProblem Problem(int64_t batch, int64_t steps, int64_t inputs,
                       int64_t units, CellKind cell = CellKind::kLstm) {
  RnnConfig config;
  config.cell = cell;
  config.input_size = inputs;
  config.cell_size = config.hidden_size = units;
  VectorTraits traits;
  traits.lanes = 16;
  ForwardProblem p(config, traits);
  p.batch = batch;
  p.steps = steps;
  p.rows = batch * steps;
  p.caches = {48 << 10, 1 << 20, 32 << 20};
  return p;
}

// The same with one thing changed.
ForwardProblem Filled(ForwardProblem p) {
  p.weights = WeightsState::kFilled;
  return p;
}
ForwardProblem Empty(ForwardProblem p) {
  p.weights = WeightsState::kEmpty;
  return p;
}
ForwardProblem Masked(ForwardProblem p) {
  p.all_valid = false;
  p.rows -= 1;
  return p;
}
ForwardProblem Saving(ForwardProblem p) {
  p.saves = true;
  return p;
}
ForwardProblem Dropping(ForwardProblem p) {
  p.drops = true;
  return p;
}
ForwardProblem Projected(ForwardProblem p) {
  p.config.hidden_size /= 2;
  return p;
}
ForwardProblem WithoutInput(ForwardProblem p) {
  p.has_input = p.units_in_rows = false;
  return p;
}
ForwardProblem ByUnit(ForwardProblem p) {
  p.units_in_rows = false;
  return p;
}
ForwardProblem InDouble(ForwardProblem p) {
  p.traits.lanes = 8;
  p.traits.element_bytes = sizeof(double);
  p.vectors *= 2;
  return p;
}
// A bfloat16 layer, on a processor that multiplies pairs or one that does not.
ForwardProblem InBFloat16(ForwardProblem p, bool dots_pairs) {
  p.config.bfloat16 = true;
  p.traits.dots_pairs = dots_pairs;
  p.format = FormatOf(p);
  return p;
}

ForwardProblem WithTiles(ForwardProblem p) {
  p.traits.has_tiles = true;
  return InBFloat16(p, true);
}

// Weights that are packed once.
ForwardProblem Frozen(ForwardProblem p, WeightFormat format) {
  p.weights = WeightsState::kFilled;
  SetFormat(format, &p);
  return p;
}

constexpr auto kStep = ForwardWay::kOneStep;
constexpr auto kRow = ForwardWay::kOneRow;
constexpr auto kSequence = ForwardWay::kSequence;
constexpr auto kElements = WeightFormat::kElements;
constexpr auto kPairs = WeightFormat::kBFloat16Pairs;
constexpr auto kQuads = WeightFormat::kInt8Quads;
constexpr auto kFusedQuads = WeightFormat::kInt8FusedQuads;
constexpr auto kGru = CellKind::kGru;

struct Call {
  const char* name;
  ForwardProblem problem;
  int most_threads;
  ForwardWay way;
  int threads;
  WeightFormat format = kElements;
};

std::vector<Call> Calls() {
  return {
      // One step: the weights are read in place.
      {"step", Problem(1, 1, 128, 128), 1, kStep, 1},
      {"step, two threads", Problem(1, 1, 128, 128), 2, kStep, 1},
      {"large step", Problem(1, 1, 1024, 1024), 2, kStep, 2},
      {"step of 48 rows", Problem(48, 1, 128, 128), 2, kStep, 2},
      {"masked step", Masked(Problem(4, 1, 32, 32)), 1, kStep, 1},
      {"saved step", Saving(Problem(4, 1, 32, 32)), 1, kStep, 1},
      {"step in double", InDouble(Problem(1, 1, 32, 32)), 1, kStep, 1},
      {"step of tanh", Problem(1, 1, 32, 32, CellKind::kTanh), 1, kStep, 1},
      {"step, widened", InBFloat16(Problem(1, 1, 32, 32), false), 1, kStep, 1},
      {"large step, pairs are widened",
       InBFloat16(Problem(1, 1, 1024, 1024), false), 1, kStep, 1, kPairs},
      // One step whose weights are packed.
      {"step of 49 rows", Problem(49, 1, 128, 128), 2, kSequence, 2},
      {"step with dot products", InBFloat16(Problem(1, 1, 32, 32), true), 1,
       kRow, 1, kPairs},
      {"step with empty kept weights", Empty(Problem(1, 1, 32, 32)), 1, kRow,
       1},
      {"step with kept weights", Filled(Problem(1, 1, 128, 128)), 2, kRow, 1},
      {"large step, kept", Filled(Problem(1, 1, 1024, 1024)), 2, kSequence, 2},
      {"large step, kept, one thread", Filled(Problem(1, 1, 1024, 1024)), 1,
       kRow, 1},
      {"step of weights by unit", ByUnit(Problem(1, 1, 32, 32)), 1, kRow, 1},
      {"step of a GRU", Problem(1, 1, 32, 32, kGru), 1, kRow, 1},
      {"projected step", Projected(Problem(1, 1, 32, 32)), 1, kSequence, 1},
      {"dropped step", Dropping(Problem(1, 1, 32, 32)), 1, kSequence, 1},
      {"step without input", WithoutInput(Problem(1, 1, 32, 32)), 1, kSequence,
       1},
      {"layer-normalised step", Problem(1, 1, 32, 32, CellKind::kLayerNormLstm),
       1, kSequence, 1},
      // One row.
      {"row", Problem(1, 100, 128, 128), 1, kRow, 1},
      {"small row, two threads", Problem(1, 100, 24, 32), 2, kRow, 1},
      {"row, two threads", Problem(1, 100, 256, 256), 2, kSequence, 2},
      {"row of a GRU", Problem(1, 100, 32, 32, kGru), 1, kRow, 1},
      {"row, kept", Filled(Problem(1, 100, 64, 64)), 1, kRow, 1},
      {"row in double", InDouble(Problem(1, 100, 32, 32)), 1, kSequence, 1},
      {"saved row", Saving(Problem(1, 100, 32, 32)), 1, kSequence, 1},
      {"dropped row", Dropping(Problem(1, 100, 32, 32)), 1, kSequence, 1},
      {"masked row", Masked(Problem(1, 100, 32, 32)), 1, kSequence, 1},
      {"row without input", WithoutInput(Problem(1, 100, 32, 32)), 1, kSequence,
       1},
      {"row with dot products", InBFloat16(Problem(1, 100, 32, 32), true), 1,
       kRow, 1, kPairs},
      {"row with tiles", WithTiles(Problem(1, 100, 32, 32)), 1, kSequence, 1,
       kPairs},
      {"row, widened", InBFloat16(Problem(1, 100, 32, 32), false), 1, kRow, 1},
      {"row of a reset-before GRU",
       Problem(1, 100, 32, 32, CellKind::kResetBeforeGru), 1, kSequence, 1},
      {"row of quads", Frozen(Problem(1, 100, 64, 64), kQuads), 1, kRow, 1,
       kQuads},
      {"step of quads", Frozen(Problem(1, 1, 64, 64), kFusedQuads), 2, kRow, 1,
       kFusedQuads},
      {"row of frozen pairs", Frozen(Problem(1, 100, 64, 64), kPairs), 1,
       kSequence, 1, kPairs},
      {"projected row of quads",
       Frozen(Projected(Problem(1, 100, 64, 64)), kQuads), 1, kSequence, 1,
       kQuads},
      // Anything else.
      {"two rows of quads", Frozen(Problem(2, 100, 64, 64), kFusedQuads), 1,
       kSequence, 1, kFusedQuads},
      {"two rows", Problem(2, 100, 32, 32), 1, kSequence, 1},
      {"training", Saving(Problem(64, 50, 256, 256)), 2, kSequence, 2},
      {"large", Problem(64, 25, 1024, 1024), 2, kSequence, 2},
      {"few steps of bfloat16", InBFloat16(Problem(2, 9, 1024, 1024), false), 2,
       kSequence, 2, kPairs},
      {"rows of bfloat16", InBFloat16(Problem(8, 9, 1024, 1024), false), 2,
       kSequence, 2},
      {"no rows", Problem(0, 1, 32, 32), 1, kSequence, 1},
      {"no steps", Problem(4, 0, 32, 32), 1, kSequence, 1},
  };
}

TEST(EachCallTakesItsWay) {
  for (const Call& call : Calls()) {
    ForwardPlan plan;
    PlanForward(&call.problem, 1, call.most_threads, &plan);
    const bool right = plan.way == call.way && plan.threads == call.threads &&
                       plan.format == call.format && !plan.side_by_side;
    if (!right) {
      std::fprintf(stderr, "%s: way %d, %d threads\n", call.name,
                   static_cast<int>(plan.way), plan.threads);
    }
    CHECK(right);
  }
}

TEST(WeightsAreKeptUnlessTheyAreReadInPlace) {
  for (const Call& call : Calls()) {
    ForwardProblem problem = call.problem;
    problem.weights = WeightsState::kOfCall;
    ForwardPlan plan;
    PlanForward(&problem, 1, 1, &plan);
    CHECK(ReadsInPlace(problem) == (plan.way == ForwardWay::kOneStep));
  }
}

// Both directions have one plan, or each its own on all threads.
TEST(DirectionsRunSideBySideWhereTheirWeightsFit) {
  for (const int64_t units : {32, 128, 4096}) {
    for (const int threads : {1, 2}) {
      const ForwardProblem problems[] = {Problem(32, 50, units, units),
                                         Problem(32, 50, units, units)};
      ForwardPlan plans[kMaxTogether];
      PlanForward(problems, kMaxTogether, threads, plans);
      CHECK(plans[0].side_by_side == (threads == 2 && units < 4096));
      CHECK(plans[1].side_by_side == plans[0].side_by_side);
    }
  }
}

// Pairs are for weights that do not stay in the cache of this processor that
// is kept for them.
TEST(FrozenWeightsHaveTheFormatOfTheirTypeAndSize) {
  const float floats[1] = {};
  const BFloat16 narrow[1] = {};
  const int8_t integers[1] = {};
  GateMatrices<const float> weights, in_bfloat16, in_int8;
  weights.data = floats;
  in_bfloat16.bfloat16 = narrow;
  in_int8.int8 = integers;
  const auto shared = static_cast<int64_t>(SharedPart(TheCaches()));
  for (const bool has_many_registers : {false, true}) {
    VectorTraits traits;
    traits.lanes = 16;
    traits.has_many_registers = has_many_registers;
    const int64_t most = (has_many_registers ? TheCaches().l2 : shared) / 4;
    for (const int64_t elements : {int64_t{1}, most, most + 1, 100 * most}) {
      CHECK(FrozenFormat(weights, elements, traits) == kElements);
      CHECK(FrozenFormat(in_bfloat16, elements, traits) ==
            (elements > most ? kPairs : kElements));
      for (const int lanes : {4, 8, 16}) {
        traits.lanes = lanes;
        CHECK(FrozenFormat(in_int8, elements, traits) ==
              (HasInt8Dots(4 * lanes) ? kFusedQuads : kQuads));
      }
    }
  }
}

TEST(FormatsHaveTheirSpeedsAndSizes) {
  struct Expected {
    WeightFormat format;
    double speed;
    int64_t bytes;
  };
  const ForwardProblem p = Problem(1, 1, 16, 16);  // in any L2 cache
  ForwardProblem bfloat16 = p;
  bfloat16.traits.pairs_speed = 1.75;
  for (const auto& [format, speed, bytes] :
       {Expected{kElements, 1, 4}, Expected{kPairs, 1.75, 2},
        Expected{kQuads, 1.5, 1}, Expected{kFusedQuads, 4, 1}}) {
    const ForwardProblem set = Frozen(bfloat16, format);
    CHECK_EQ(SpeedOf(format, set.traits), speed);
    CHECK(set.format == format);
    CHECK_EQ(set.rates.multiply_add, Rates().multiply_add / speed);
    CHECK_EQ(set.rates.near_byte, Rates().near_byte);
    CHECK_EQ(set.packed_bytes(), bytes * 16 * 4 * (16 + 16));
    CHECK(Fits(kRow, set) == (format != kPairs));
    CHECK(!Fits(kRow, Projected(set)));
  }
}

// An item of faster products has about as many more units: of these 32 vectors,
// which each multiply and add 32768 times, as many as do so 100,000 times.
TEST(ItemsOfQuadsHaveMoreUnits) {
  const auto units = [](WeightFormat format) {
    ForwardProblem p = Problem(1, 50, 512, 512);
    p.format = format;
    return ForwardSchedule(p, 1).group();
  };
  CHECK_EQ(units(kElements), 4 * 16);
  CHECK_EQ(units(kPairs), 4 * 16);
  CHECK_EQ(units(kQuads), 6 * 16);
  CHECK_EQ(units(kFusedQuads), 16 * 16);
}

// A field that only the prediction reads changes it.
TEST(EachSizeOfAProblemCounts) {
  const ForwardProblem base = Problem(16, 50, 256, 128);
  const double time = ForwardSchedule(base, 1).time();
  const auto differs = [&](const auto& change) {
    ForwardProblem other = base;
    change(&other);
    CHECK(ForwardSchedule(other, 1).time() != time);
  };
  differs([](ForwardProblem* p) { p->config.input_size = 128; });
  differs([](ForwardProblem* p) { p->config.hidden_size = 96; });
  differs([](ForwardProblem* p) { p->vectors = 16; });
  differs([](ForwardProblem* p) { p->traits.lanes = 8; });
  differs([](ForwardProblem* p) { p->weights = WeightsState::kFilled; });
  differs([](ForwardProblem* p) { p->shape.input = 3; });
  differs([](ForwardProblem* p) { p->shape.recurrent = 3; });
  differs([](ForwardProblem* p) { p->steps = 25; });
  differs([](ForwardProblem* p) { p->rows = 700; });
}

// No two sizes are exchanged on the way from a call to its problem: the results
// would be right, and only the prediction wrong.
TEST(AProblemHasTheSizesOfItsCall) {
  Sequence sequence;
  sequence.batch = 3;
  sequence.time = sequence.steps = 5;
  const PackedSequence valid(sequence);
  const float weights[1] = {};
  EngineForward<float> layer;
  layer.valid = &valid;
  layer.config.cell = CellKind::kGru;  // 3 parts of x, 3 of h, 4 in all
  layer.config.input_size = 7;
  layer.config.cell_size = layer.config.hidden_size = 17;
  layer.weights.input = ByInput(weights, 3, 17);
  layer.weights.recurrent = ByInput(weights, 3, 17);
  ForwardEngine<float> engine = {};
  engine.traits.lanes = 8;
  const ForwardProblem p = ProblemOf(layer, engine);
  CHECK_EQ(p.batch, 3);
  CHECK_EQ(p.steps, 5);
  CHECK_EQ(p.rows, 15);
  CHECK_EQ(p.input(), 7);
  CHECK_EQ(p.vectors, 3);
  CHECK_EQ(p.units(), 24);
  CHECK_EQ(p.vector_bytes(), 32);
  CHECK_EQ(p.z_bytes(), 3 * 24 * 4);
  CHECK_EQ(p.packed_bytes(), 24 * 4 * (3 * 7 + 3 * 17));
  CHECK(p.all_valid && p.has_input && p.units_in_rows);
  CHECK(!p.drops && !p.saves && !p.multiplies_m());
  CHECK(p.weights == WeightsState::kOfCall);
  layer.weights.input = {};
  const ForwardProblem without = ProblemOf(layer, engine);
  CHECK_EQ(without.input(), 0);
  CHECK(!without.units_in_rows);
}

}  // namespace
}  // namespace tf_lstm_ops::cpu::plan_test
