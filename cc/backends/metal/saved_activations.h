// The saved activations of a layer direction as tensors of a graph, and as one
// tensor: the reserve's, or the z state of MPSGraph's LSTM.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_

#include <array>

#include "backends/metal/value.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::metal {

// [T, B, H] each, by LstmSaved or GruSaved.
using GraphActivations = std::array<Value, kMaxSavedActivations>;

// [T * B * SavedCount(cell) * H]: the layout of PackedActivations in core/,
// with a row for each step and row of the batch. 0 where the cell saves
// nothing.
Value PackActivations(const GraphActivations& saved, CellKind cell);

// The reverse. Activations that are not in the layout are 0.
GraphActivations UnpackActivations(const Value& packed, const RnnConfig& config,
                                   const Sequence& sequence);

// The z state [T, B, 4H] of an LSTM, and the reverse, which sets the gates.
Value JoinZState(const GraphActivations& saved, const GateOrder& order);
void SplitZState(const Value& z_state, const GateOrder& order,
                 GraphActivations* saved);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_
