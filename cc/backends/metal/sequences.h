// Conversions between an op's tensors, which have the layout of a Sequence, and
// the time-major tensors [T, B, .] of a layer graph.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_
#define TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_

#include "backends/metal/value.h"
#include "core/sequence.h"

namespace tf_lstm_ops::metal {

// Returns the sequence that a layer graph processes: time-major, all `time`
// steps, no lengths and no mask. If the outputs are in the order of the steps
// (outputs_in_order), ToSteps reverses the input, and the layer graph runs
// forwards.
Sequence GraphSequence(const Sequence& sequence);

// Converts a tensor that is indexed by the time step that is read, such as x
// and the mask, from [B, T, .] or [T, B, .] to [T, B, .] in the order of
// GraphSequence. FromSteps is the inverse.
Value ToSteps(const Sequence& sequence, const Value& rows);
Value FromSteps(const Sequence& sequence, const Value& steps);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_
