// Access to the blocks of the gates in weights, biases, pre-activations and z
// states.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_GATES_H_
#define TF_LSTM_OPS_BACKENDS_METAL_GATES_H_

#include <array>

#include "backends/metal/value.h"
#include "core/gate_order.h"

namespace tf_lstm_ops::metal {

// Returns the block of `gate` along an axis of `all` that holds the blocks of
// `gates` gates.
Value GateBlock(const Value& all, int axis, int gates, const GateOrder& order,
                int gate);

// Returns the blocks of an LSTM's four gates, concatenated along an axis.
// `blocks` is indexed by LstmGate and has four tensors or four scalars 0. The
// result of the latter is 0.
Value JoinGates(const std::array<Value, kMaxPreActivations>& blocks, int axis,
                const GateOrder& order);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_GATES_H_
