// The ways to compute a forward pass, as forward_plan.cc asks them. Each
// returns whether it takes the problem, and then sets its part of the plan.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_

#include "backends/cpu/plan/forward_plan.h"

namespace tf_lstm_ops::cpu {

bool TakeOneStep(const ForwardProblem& problem, int threads, ForwardPlan* plan);
bool TakeOneRow(const ForwardProblem& problem, int threads, ForwardPlan* plan);
bool TakeSequence(const ForwardProblem& problem, int threads,
                  ForwardPlan* plan);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_
