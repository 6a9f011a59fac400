// Where the gates stand in weights and z states.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_GATES_H_
#define TF_LSTM_OPS_BACKENDS_METAL_GATES_H_

#include <array>

#include "backends/metal/rnn.h"
#include "core/gate_order.h"

namespace tf_lstm_ops::metal {

// A part's share of an axis, of so many gates.
Value GateBlock(const Value& all, int axis, int gates, const GateOrder& order,
                int part);

// An LSTM's parts beside each other; 0 where these are.
Value JoinGates(const std::array<Value, kMaxPreActivations>& parts, int axis,
                const GateOrder& order);

// The z state [T,B,4H] of an LSTM's steps, and back.
Value ZState(const StepValues& steps, const GateOrder& order);
void SetZState(const Value& z, const GateOrder& order, StepValues* steps);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_GATES_H_
