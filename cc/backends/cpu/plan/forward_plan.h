// ForwardPlan: which way a forward pass is computed.
//
// The ways are in an ordered list, kWays: the first one that takes a problem
// computes it. A way has a file in plan/ways/, a cpu::Way, which decides, and a
// file in simd/forward/, which computes. The result does not depend on the
// plan.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PLAN_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PLAN_H_

#include "backends/cpu/plan/forward_problem.h"
#include "backends/cpu/plan/forward_schedule.h"

namespace tf_lstm_ops::cpu {

enum class ForwardWay {
  kOneStep,   // one step, with weights that are read where they lie
  kOneRow,    // one row of the batch on one thread: a loop over the steps
  kSequence,  // any other pass, by a ForwardSchedule; the last one
};
constexpr int kForwardWays = static_cast<int>(ForwardWay::kSequence) + 1;

struct ForwardPlan {
  ForwardWay way = ForwardWay::kSequence;
  int threads = 1;
  WeightFormat format = WeightFormat::kElements;  // of packed weights
  // Whether this pass and that of another direction run side by side.
  bool side_by_side = false;
  ForwardSchedule schedule;  // of kSequence
  int64_t group = 0;         // of kOneStep: units of an item
};

// Plans the passes of `count` layer directions, 1 or kMaxTogether, on at most
// `threads` threads.
void PlanForward(const ForwardProblem* problems, int count, int threads,
                 ForwardPlan* plans);

// Whether the plan reads the weights in place. Weights are kept for later calls
// only where it does not.
bool ReadsInPlace(const ForwardProblem& problem);

// How a call packs the weights. Pairs halve the bytes that a step reads. Where
// the processor does not multiply pairs, widening them is free with a few rows,
// while a product waits for memory.
WeightFormat FormatOf(const ForwardProblem& problem);

// The format of weights that are packed once, `elements` in all, for products
// of any number of rows. Pairs are widened at each use. They are faster where
// the weights do not stay in a cache.
WeightFormat FrozenFormat(const GateMatrices<const float>& weights,
                          int64_t elements, const VectorTraits& traits);

// Sets the format of the packed weights, and the rates of their products.
void SetFormat(WeightFormat format, ForwardProblem* problem);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PLAN_H_
