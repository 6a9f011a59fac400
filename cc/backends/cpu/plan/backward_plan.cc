#include "backends/cpu/plan/backward_plan.h"

#include "backends/cpu/plan/side_by_side.h"
#include "backends/cpu/processor/measured_rates.h"

namespace tf_lstm_ops::cpu {
namespace {

bool TakesStepGradient(const BackwardProblem& problem) {
  return problem.wants_z_grad_only && problem.together == 1 &&
         problem.config.cell == CellKind::kLstm && !problem.config.projected();
}

BackwardPlan PlanOf(const BackwardProblem& problem, int threads) {
  BackwardPlan plan;
  plan.format = problem.format;
  if (TakesStepGradient(problem)) {
    plan.way = BackwardWay::kStepGradient;
    const Rates rates;
    const double time =
        rates.equations * static_cast<double>(problem.vectors * problem.batch);
    plan.threads = ThreadsOfPhase(rates, time, problem.vectors, threads);
    return plan;
  }
  plan.schedule = BackwardSchedule(problem, threads);
  plan.threads = plan.schedule.threads();
  return plan;
}

}  // namespace

void SetFormat(BackwardProblem* problem) {
  const bool rounds = problem->config.bfloat16 && problem->traits.dots_pairs;
  problem->format =
      rounds ? WeightFormat::kBFloat16Pairs : WeightFormat::kElements;
  problem->rates = RatesFor(problem->weight_bytes(),
                            SpeedOf(problem->format, problem->traits));
}

void PlanBackward(const BackwardProblem* problems, int count, int threads,
                  BackwardPlan* plans) {
  PlanTogether(problems, count, threads, &PlanOf, plans);
}

}  // namespace tf_lstm_ops::cpu
