// ForwardWay::kSequence: any pass, by the phases of a ForwardSchedule.
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops::cpu {

bool TakeSequence(const ForwardProblem& problem, int threads,
                  ForwardPlan* plan) {
  plan->way = ForwardWay::kSequence;
  plan->schedule = ForwardSchedule(problem, threads);
  plan->threads = plan->schedule.threads();
  return true;
}

}  // namespace tf_lstm_ops::cpu
