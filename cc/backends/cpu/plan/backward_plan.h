// BackwardPlan: which way a backward pass is computed, and how its work is
// divided. The result does not depend on the number of threads.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PLAN_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PLAN_H_

#include "backends/cpu/plan/backward_problem.h"
#include "backends/cpu/plan/backward_schedule.h"

namespace tf_lstm_ops::cpu {

enum class BackwardWay {
  kStepGradient,  // one LSTM step without products
  kSequence,      // any other pass, by a BackwardSchedule
};

struct BackwardPlan {
  BackwardWay way = BackwardWay::kSequence;
  int threads = 1;
  WeightFormat format = WeightFormat::kElements;  // of the factors of products
  // Whether this pass and that of another direction run side by side.
  bool side_by_side = false;
  BackwardSchedule schedule;  // of kSequence
};

// Plans the passes of `count` layer directions, 1 or kMaxTogether, on at most
// `threads` threads.
void PlanBackward(const BackwardProblem* problems, int count, int threads,
                  BackwardPlan* plans);

// Sets the format of the factors of products, and the rates of the products.
// They are pairs of bfloat16 where the processor multiplies these.
void SetFormat(BackwardProblem* problem);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PLAN_H_
