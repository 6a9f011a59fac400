// Conversions between an op's tensors, which have the layout of a Sequence, and
// the time-major tensors [T, B, .] of a layer graph.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_
#define TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_

#include "backends/metal/value.h"
#include "core/sequence.h"

namespace tf_lstm_ops::metal {

// The sequence as a layer graph processes it: time-major, all `time` steps, no
// lengths and no mask. Where outputs are in order of processing, the input is
// reversed by ToSteps, and the layer graph runs forwards.
Sequence GraphSequence(const Sequence& sequence);

// A tensor by the time step that is read (x, the mask), [B, T, .] or [T, B, .],
// as [T, B, .] in the order of GraphSequence. FromSteps is the reverse.
Value ToSteps(const Sequence& sequence, const Value& rows);
Value FromSteps(const Sequence& sequence, const Value& steps);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_SEQUENCES_H_
