#include "backends/metal/sequences.h"

namespace tf_lstm_ops::metal {
namespace {

bool ReversesInput(const Sequence& sequence) {
  return sequence.reversed && sequence.outputs_in_order;
}

}  // namespace

Sequence GraphSequence(const Sequence& sequence) {
  Sequence steps;
  steps.batch = sequence.batch;
  steps.time = steps.steps = sequence.time;
  steps.reversed = sequence.reversed && !sequence.outputs_in_order;
  return steps;
}

Value ToSteps(const Sequence& sequence, const Value& rows) {
  const Value steps = sequence.time_major ? rows : Transposed(rows);
  return ReversesInput(sequence) ? Reversed(steps) : steps;
}

Value FromSteps(const Sequence& sequence, const Value& steps) {
  const Value rows = ReversesInput(sequence) ? Reversed(steps) : steps;
  return sequence.time_major ? rows : Transposed(rows);
}

}  // namespace tf_lstm_ops::metal
