// Whether two layer directions run side by side.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_

#include "backends/cpu/processor/caches.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cpu {

// The largest number of layer directions that run side by side.
constexpr int kMaxTogether = 2;

// A step then synchronises once for both. Threads alternate between two sets of
// recurrent weights, which is faster while both sets fit into half of their L2
// caches.
inline bool RunsSideBySide(const RnnConfig& config, int64_t element_bytes,
                           int threads) {
  const int64_t weights = GateCount(config.cell) * config.cell_size *
                          config.hidden_size * element_bytes;
  return threads > 1 && kMaxTogether * weights <= TheCaches().l2 / 2 * threads;
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_SIDE_BY_SIDE_H_
