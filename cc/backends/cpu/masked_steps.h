// FillMaskedSteps: writes the outputs of masked steps.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MASKED_STEPS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MASKED_STEPS_H_

#include <algorithm>
#include <cstdint>

#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// Calls visit(row, latest) for every step of every row of the batch, row by row
// in the order of processing. `row` is the step's output row. `latest` is the
// output row of the latest valid step of that row up to this step, or -1.
template <class Visit>
void ForEachStep(const Sequence& sequence, int64_t steps, const Visit& visit) {
  for (int64_t b = 0; b < sequence.batch; ++b) {
    int64_t latest = -1;
    for (int64_t s = 0; s < steps; ++s) {
      const Sequence::Step step = sequence.At(b, s);
      if (step.valid) latest = step.output;
      visit(step.output, latest);
    }
  }
}

// Writes the outputs of masked steps to layer.h as layer.fill requires. The
// outputs of valid steps must have been written. Steps beyond valid.steps are
// not written.
template <class T>
void FillMaskedSteps(const LayerForward<T>& layer,
                     const PackedSequence& valid) {
  const bool has_masked = valid.size() < valid.steps * valid.batch;
  if (layer.fill == Fill::kNothing || !has_masked) return;
  const int64_t hidden = layer.config.hidden_size;
  ForEachStep(layer.sequence, valid.steps, [&](int64_t row, int64_t latest) {
    if (latest == row) return;
    T* masked = layer.h + row * layer.h_stride;
    if (latest < 0 || layer.fill == Fill::kZero) {
      std::fill(masked, masked + hidden, T(0));
    } else {
      const T* from = layer.h + latest * layer.h_stride;
      std::copy(from, from + hidden, masked);
    }
  });
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MASKED_STEPS_H_
