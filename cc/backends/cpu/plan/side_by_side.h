// Whether two layer directions run side by side.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_

#include <cassert>
#include <cstdint>

#include "core/layer_direction.h"

namespace tf_lstm_ops::cpu {

// The largest number of layer directions that run side by side.
constexpr int kMaxTogether = 2;

// A step then synchronises once for both. Threads alternate between two sets of
// recurrent weights, which is faster while both sets fit into half of their L2
// caches.
template <class Problem>
bool RunsSideBySide(const Problem& problem, int threads) {
  const RnnConfig& config = problem.config;
  const int64_t weights = GateCount(config.cell) * config.cell_size *
                          config.hidden_size * problem.traits.element_bytes;
  return threads > 1 &&
         kMaxTogether * weights <= problem.caches.l2 / 2 * threads;
}

// Plans the passes of `count` layer directions, 1 or kMaxTogether, by
// plan_of(problem, threads).
template <class Problem, class Plan>
void PlanTogether(const Problem* problems, int count, int threads,
                  Plan (*plan_of)(const Problem& problem, int threads),
                  Plan* plans) {
  assert(count == 1 || count == kMaxTogether);
  if (count == kMaxTogether && RunsSideBySide(*problems, threads)) {
    for (int k = 0; k < count; ++k) {
      Problem both = problems[k];
      both.together = count;
      plans[k] = plan_of(both, threads);
      plans[k].side_by_side = true;
    }
    if (plans[0].way == plans[1].way &&
        RunsSideBySide(*problems, plans[0].threads)) {
      return;
    }
  }
  for (int k = 0; k < count; ++k) plans[k] = plan_of(problems[k], threads);
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_
