// Tests of backends/cpu/plan/forward_schedule.h and backward_schedule.h.
#include <vector>

#include "backends/cpu/plan/backward_schedule.h"
#include "backends/cpu/plan/forward_schedule.h"
#include "backends/cpu/team/thread_team.h"
#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

constexpr int64_t kLanes = 16;  // of a float vector with AVX-512
constexpr int kThreads[] = {1, 2, 8, 22, 64, 192, 100000};

// AMD Zen 5, and an Intel processor whose shared cache is slow. The second
// one's rates are assumed, not measured.
const Caches kZen5 = {48 << 10, 1 << 20, 32 << 20};
const Caches kLargeL2 = {48 << 10, 2 << 20, 256 << 20};
Rates SlowSharedCache() {
  Rates rates;
  rates.far_byte = 0.03;
  return rates;
}

struct Layer {
  int64_t batch, steps, inputs, units;
};

// Benchmark rows, and sizes that are not multiples of anything.
const Layer kLayers[] = {
    {1, 100, 128, 128},   {1, 50, 256, 256},   {4, 50, 256, 256},
    {16, 50, 256, 256},   {16, 25, 512, 512},  {4, 25, 1024, 1024},
    {16, 25, 1024, 1024}, {32, 100, 128, 128}, {64, 50, 256, 256},
    {64, 25, 512, 512},   {256, 60, 7, 32},    {1024, 50, 4, 32},
    {1664, 12, 20, 64},   {128, 40, 56, 128},  {1, 300, 24, 48},
    {17, 33, 70, 200},    {31, 3, 1, 1},       {1, 1, 5, 7},
    {12, 2, 9, 33},       {97, 5, 3, 17},      {64, 25, 1024, 1024}};

PackedSequence Steps(const Layer& layer) {
  Sequence sequence;
  sequence.batch = layer.batch;
  sequence.time = sequence.steps = layer.steps;
  return PackedSequence(sequence);
}

// An LSTM layer in float.
template <class Problem>
Problem ProblemOf(const Layer& layer) {
  RnnConfig config;
  config.input_size = layer.inputs;
  config.cell_size = config.hidden_size = layer.units;
  VectorTraits traits;
  traits.lanes = kLanes;
  Problem problem(config, traits);
  problem.batch = layer.batch;
  problem.steps = layer.steps;
  problem.rows = layer.batch * layer.steps;
  problem.caches = kZen5;
  return problem;
}
ForwardProblem ForwardOf(const Layer& layer) {
  return ProblemOf<ForwardProblem>(layer);
}
BackwardProblem BackwardOf(const Layer& layer) {
  return ProblemOf<BackwardProblem>(layer);
}

// Calls use(problem, schedule, threads) for all layers and numbers of threads,
// with one pass and two side by side, with one phase a step and two.
template <class F>
void ForEachForward(const F& use) {
  for (const Layer& layer : kLayers) {
    for (const int kind : {0, 1, 2, 3}) {
      ForwardProblem problem = ForwardOf(layer);
      problem.together = kind == 1 ? 2 : 1;
      problem.shape.resets_before = kind == 2;
      problem.shape.reduces_rows = kind == 3;
      for (const int threads : kThreads) {
        use(problem, ForwardSchedule(problem, threads), threads);
      }
    }
  }
}

template <class F>
void ForEachBackward(const F& use) {
  for (const Layer& layer : kLayers) {
    for (const int kind : {0, 1, 2}) {
      BackwardProblem problem = BackwardOf(layer);
      problem.together = kind == 1 ? 2 : 1;
      problem.shape.reduces_rows = kind == 2;
      for (const int threads : kThreads) {
        use(problem, BackwardSchedule(problem, threads), threads);
      }
    }
  }
}

TEST(SchedulesUseNoMoreThreadsThanHaveWork) {
  ForEachForward([](const auto& problem, const auto& schedule, int threads) {
    const int64_t vectors = problem.together * problem.vectors;
    const int64_t slices = problem.together * (problem.batch / 2);
    CHECK(schedule.threads() >= 1);
    CHECK(schedule.threads() <= threads);
    CHECK(schedule.threads() <= Max(vectors, slices));
    CHECK(schedule.threads() <= kMaxThreads);
  });
  ForEachBackward([](const auto& problem, const auto& schedule, int threads) {
    const int64_t items =
        schedule.slices() > 0 ? schedule.slices() : problem.vectors;
    CHECK(schedule.threads() >= 1);
    CHECK(schedule.threads() <= threads);
    CHECK(schedule.threads() <= problem.together * items);
    CHECK(schedule.threads() <= kMaxThreads);
  });
}

// By the prediction; kThreads ascend.
TEST(MoreThreadsNeverTakeLonger) {
  double before = 0;
  ForEachForward([&](const auto&, const auto& schedule, int threads) {
    if (threads > 1) CHECK(schedule.time() <= before);
    before = schedule.time();
  });
  ForEachBackward([&](const auto&, const auto& schedule, int threads) {
    if (threads > 1) CHECK(schedule.time() <= before);
    before = schedule.time();
  });
}

// With 22 threads, 256 rows once were groups of units: two items and a barrier
// a step.
TEST(SmallLayerWithManyRowsStaysInSlices) {
  const Layer layer = {256, 60, 7, 32};
  for (const int threads : {1, 2, 8, 22, 64, 192}) {
    const ForwardSchedule schedule(ForwardOf(layer), threads);
    CHECK(schedule.regime() == ForwardSchedule::Regime::kSlices);
    CHECK(schedule.slice_rows() >= 2);
    CHECK(schedule.threads() >= Min(threads, 16));
  }
}

// The plan of two threads that was measured to be best on Zen 5; see
// benchmarks/NOTES.md.
TEST(TwoThreadsKeepTheirPlan) {
  using Regime = ForwardSchedule::Regime;
  const struct {
    Layer layer;
    Regime regime;
    int threads;
  } kPlans[] = {{{1, 100, 128, 128}, Regime::kUnits, 2},
                {{1, 300, 24, 48}, Regime::kUnits, 1},
                {{4, 50, 256, 256}, Regime::kUnits, 2},
                {{16, 50, 256, 256}, Regime::kSlices, 2},
                {{16, 25, 1024, 1024}, Regime::kUnits, 2},
                {{24, 50, 256, 256}, Regime::kSlices, 2},
                {{32, 100, 128, 128}, Regime::kSlices, 2},
                {{64, 50, 256, 256}, Regime::kSlices, 2},
                {{64, 25, 512, 512}, Regime::kSlices, 2},
                {{64, 25, 1024, 1024}, Regime::kUnits, 2},
                {{256, 60, 7, 32}, Regime::kSlices, 2}};
  for (const auto& plan : kPlans) {
    const ForwardSchedule schedule(ForwardOf(plan.layer), 2);
    CHECK(schedule.regime() == plan.regime);
    CHECK_EQ(schedule.threads(), plan.threads);
  }
}

// W and R of 2 MiB exceed the L2 cache, R alone does not. One thread then reads
// W once for many steps.
TEST(CachesDecideTheRegime) {
  const Layer layer = {16, 50, 256, 256};
  ForwardProblem problem = ForwardOf(layer);
  problem.caches = kLargeL2;
  problem.rates = SlowSharedCache();
  CHECK(ForwardSchedule(problem, 1).regime() ==
        ForwardSchedule::Regime::kUnits);
  problem.caches.l2 = 8 << 20;
  CHECK(ForwardSchedule(problem, 1).regime() ==
        ForwardSchedule::Regime::kSlices);
}

// At least two, and as many in each slice as the threads allow.
TEST(SlicesHaveEnoughRows) {
  const PackedSequence rows = Steps({30, 32, 64, 128});
  ForwardProblem problem = ForwardOf({30, 32, 64, 128});
  problem.together = 2;
  for (const int threads : {1, 2, 3, 4, 5, 6, 8}) {
    const ForwardSchedule schedule(problem, threads);
    if (schedule.regime() != ForwardSchedule::Regime::kSlices) continue;
    CHECK(schedule.Items(rows, 1) * 2 <= 30);
  }
}

// Two directions have the slices of one direction with half of the threads.
TEST(DirectionsShareTheThreads) {
  const auto slices = [](const Layer& layer, int threads) -> int64_t {
    const PackedSequence rows = Steps(layer);
    ForwardProblem problem = ForwardOf(layer);
    problem.together = 2;
    const ForwardSchedule schedule(problem, threads);
    if (schedule.regime() != ForwardSchedule::Regime::kSlices) return 0;
    CHECK_EQ(schedule.threads(), threads);
    return schedule.Items(rows, 1);
  };
  CHECK_EQ(slices({16, 50, 64, 128}, 2), 1);
  CHECK_EQ(slices({64, 32, 64, 128}, 2), 1);
  CHECK_EQ(slices({64, 32, 64, 128}, 4), 2);
  CHECK_EQ(slices({192, 32, 64, 128}, 2), 2);
}

TEST(WeightsAreFetchedAheadFromASlowSharedCacheOnly) {
  const Layer layer = {16, 25, 1024, 1024};
  ForwardProblem problem = ForwardOf(layer);
  CHECK(!ForwardSchedule(problem, 2).prefetches_weights());
  problem.rates = SlowSharedCache();
  CHECK(ForwardSchedule(problem, 2).prefetches_weights());
  problem.caches.l2 = 64 << 20;  // a part of the weights fits
  CHECK(!ForwardSchedule(problem, 2).prefetches_weights());
}

// A call of few microseconds does not wake other threads.
TEST(SmallCallsRunOnOneThread) {
  for (const Layer& layer : {Layer{1, 1, 5, 7}, Layer{31, 3, 1, 1}}) {
    CHECK_EQ(ForwardSchedule(ForwardOf(layer), 192).threads(), 1);
    CHECK_EQ(BackwardSchedule(BackwardOf(layer), 192).threads(), 1);
  }
}

// Each unit and each row of the batch belongs to one item of its phase.
TEST(ItemsCoverTheWork) {
  ForEachForward([](const auto& problem, const auto& schedule, int) {
    using Work = ForwardSchedule::Work;
    const PackedSequence rows =
        Steps({problem.batch, problem.steps, 0, problem.config.cell_size});
    for (int64_t phase = 0; phase < schedule.Phases(rows); ++phase) {
      const auto at = schedule.At(phase);
      const int64_t items = schedule.Items(rows, phase);
      if (at.work == Work::kCells) {
        CHECK(items * schedule.group() >= problem.units());
        CHECK((items - 1) * schedule.group() < problem.units());
      } else if (at.work == Work::kSlices) {
        const int64_t last = rows.steps - 1;
        CHECK_EQ(schedule.SliceBegin(rows, 0, last), rows.Begin(last));
        CHECK_EQ(schedule.SliceBegin(rows, items, last), rows.size());
        CHECK(schedule.slice_rows() <= ForwardSchedule::kBandRows);
      }
    }
  });
}

// A step of one row, three vectors of units and one thread is one item.
TEST(StepsWithFewSumsHaveWideItems) {
  const Layer layer = {1, 300, 24, 48};
  CHECK_EQ(BackwardSchedule(BackwardOf(layer), 1).group(), 3 * kLanes);
}

// The order of sums: steps, chunks and slices are the same for any number of
// threads and any caches.
TEST(BackwardSumsDoNotDependOnTheMachine) {
  for (const Layer& layer : kLayers) {
    const BackwardSchedule one(BackwardOf(layer), 1);
    for (const int threads : kThreads) {
      BackwardProblem problem = BackwardOf(layer);
      problem.caches = kLargeL2;
      problem.rates = SlowSharedCache();
      const BackwardSchedule other(problem, threads);
      CHECK_EQ(other.slices(), one.slices());
      CHECK_EQ(other.chunks(), one.chunks());
      CHECK_EQ(other.chunk_rows(), one.chunk_rows());
    }
  }
}

}  // namespace
}  // namespace tf_lstm_ops::cpu
