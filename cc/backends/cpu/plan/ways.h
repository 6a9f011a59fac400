// The ways to compute a forward pass, as forward_plan.cc asks them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_

#include "backends/cpu/plan/forward_plan.h"

namespace tf_lstm_ops::cpu {

// What a plan knows of a way. ForwardWayFunctions is the other half, which
// computes.
struct Way {
  // Whether passes of the layer may take the way: by the cell, the weights and
  // their format.
  bool (*fits)(const ForwardProblem& problem);
  // Of a problem that fits: returns whether the way computes it, on at most
  // `threads` threads, and then sets its part of the plan.
  bool (*take)(const ForwardProblem& problem, int threads, ForwardPlan* plan);
};

// Each is in the file of its name in ways/.
extern const Way kOneStepWay, kOneRowWay, kSequenceWay;

// By ForwardWay. The first one that takes a problem computes it. The last one
// takes any.
extern const Way* const kWays[kForwardWays];

// Whether passes of the layer may take a way.
inline bool Fits(ForwardWay way, const ForwardProblem& problem) {
  return kWays[static_cast<int>(way)]->fits(problem);
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_WAYS_H_
