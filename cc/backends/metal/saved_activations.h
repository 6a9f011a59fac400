// The saved activations of a layer direction as tensors of a graph, and as one
// tensor: the reserve's, or the z state of MPSGraph's LSTM.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_

#include <array>

#include "backends/metal/value.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::metal {

// [T, B, H] each, indexed by LstmSaved or GruSaved. An absent activation is 0.
using GraphActivations = std::array<Value, kMaxSavedActivations>;

// Returns [T * B * SavedCount(cell) * H], in the layout of PackedActivations in
// core/, with a row for each step and row of the batch. Returns 0 if the cell
// saves nothing.
Value PackActivations(const GraphActivations& saved, CellKind cell);

// The inverse of PackActivations. Activations that are not in the layout are 0.
GraphActivations UnpackActivations(const Value& packed, const RnnConfig& config,
                                   const Sequence& sequence);

// Returns the z state [T, B, 4H] of an LSTM. SplitZState is the inverse: it
// sets the gates of `saved`.
Value JoinZState(const GraphActivations& saved, const GateOrder& order);
void SplitZState(const Value& z_state, const GateOrder& order,
                 GraphActivations* saved);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_SAVED_ACTIVATIONS_H_
