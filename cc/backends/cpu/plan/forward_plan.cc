#include "backends/cpu/plan/forward_plan.h"

#include "backends/cpu/plan/side_by_side.h"
#include "backends/cpu/plan/ways.h"
#include "backends/cpu/processor/int8_dots.h"
#include "backends/cpu/processor/measured_rates.h"

namespace tf_lstm_ops::cpu {

const Way* const kWays[kForwardWays] = {&kOneStepWay, &kOneRowWay,
                                        &kSequenceWay};

namespace {

ForwardPlan PlanOf(const ForwardProblem& problem, int threads) {
  ForwardPlan plan;
  plan.format = problem.format;
  for (int k = 0; k < kForwardWays; ++k) {
    plan.way = static_cast<ForwardWay>(k);
    if (kWays[k]->fits(problem) && kWays[k]->take(problem, threads, &plan)) {
      break;
    }
  }
  return plan;
}

}  // namespace

WeightFormat FrozenFormat(const GateMatrices<const float>& weights,
                          int64_t elements, const VectorTraits& traits) {
  if (weights.int8) {
    return HasInt8Dots(static_cast<int>(traits.lanes * traits.element_bytes))
               ? WeightFormat::kInt8FusedQuads
               : WeightFormat::kInt8Quads;
  }
  if (weights.rounds_factors && traits.dots_pairs) {
    return WeightFormat::kBFloat16Pairs;
  }
  // With 16 registers a product of several rows takes 1.1 to 1.3 times as long,
  // which is worth it where the weights come from memory.
  const Caches& caches = TheCaches();
  const double kept = traits.has_many_registers ? static_cast<double>(caches.l2)
                                                : SharedPart(caches);
  return weights.bfloat16 &&
                 static_cast<double>(elements * traits.element_bytes) > kept
             ? WeightFormat::kBFloat16Pairs
             : WeightFormat::kElements;
}

void SetFormat(WeightFormat format, ForwardProblem* problem) {
  problem->format = format;
  problem->rates =
      RatesFor(problem->packed_bytes(), SpeedOf(format, problem->traits));
}

WeightFormat FormatOf(const ForwardProblem& problem) {
  if (!problem.config.bfloat16) return WeightFormat::kElements;
  if (problem.traits.dots_pairs) return WeightFormat::kBFloat16Pairs;
  const int64_t row = GateCount(problem.config.cell) *
                      problem.config.cell_size *
                      static_cast<int64_t>(sizeof(float));
  const int64_t rows = problem.config.hidden_size + problem.input();
  return problem.batch <= kRows / 2 && rows * row > problem.caches.l2
             ? WeightFormat::kBFloat16Pairs
             : WeightFormat::kElements;
}

void PlanForward(const ForwardProblem* problems, int count, int threads,
                 ForwardPlan* plans) {
  PlanTogether(problems, count, threads, &PlanOf, plans);
}

}  // namespace tf_lstm_ops::cpu
