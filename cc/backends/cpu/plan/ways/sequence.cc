// ForwardWay::kSequence: any pass, by the phases of a ForwardSchedule.
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops::cpu {
namespace {

bool TakeSequence(const ForwardProblem& problem, int threads,
                  ForwardPlan* plan) {
  plan->schedule = ForwardSchedule(problem, threads);
  plan->threads = plan->schedule.threads();
  return true;
}

}  // namespace

const Way kSequenceWay = {[](const ForwardProblem&) { return true; },
                          &TakeSequence};

}  // namespace tf_lstm_ops::cpu
