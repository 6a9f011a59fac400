// ForwardWay::kOneRow: one row of the batch on one thread. There are no phases
// and no packed rows, only a loop over the steps.
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops::cpu {
namespace {

bool FitsOneRow(const ForwardProblem& problem) {
  const VectorTraits& traits = problem.traits;
  return problem.has_input && !problem.multiplies_m() &&
         !problem.shape.reduces_rows &&
         (problem.format != WeightFormat::kBFloat16Pairs ||
          traits.dots_pairs) &&
         !traits.has_tiles && traits.element_bytes == sizeof(float);
}

bool TakeOneRow(const ForwardProblem& problem, int threads, ForwardPlan* plan) {
  if (problem.batch != 1 || !problem.all_valid || problem.drops ||
      problem.saves) {
    return false;
  }
  // For one step, threads with their own L2 caches are not worth waking where
  // the weights fit into one.
  const bool is_near = problem.weights == WeightsState::kFilled &&
                       problem.steps == 1 &&
                       problem.packed_bytes() <= problem.caches.l2;
  if (threads > 1 && !is_near &&
      ForwardSchedule(problem, threads, true).threads() > 1) {
    return false;
  }
  plan->threads = 1;
  return true;
}

}  // namespace

const Way kOneRowWay = {&FitsOneRow, &TakeOneRow};

}  // namespace tf_lstm_ops::cpu
