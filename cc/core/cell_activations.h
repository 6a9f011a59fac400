// The activations of a cell: a template argument of the LSTM and GRU cells,
// whose functions these structs call by gate. A GRU's candidate has the
// function of kGateC, its reset and its update gate have that of kGateI. Device
// code includes this header.
#ifndef TF_LSTM_OPS_CORE_CELL_ACTIVATIONS_H_
#define TF_LSTM_OPS_CORE_CELL_ACTIVATIONS_H_

#include "core/activation.h"
#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// The logistic function, and tanh for the candidate and the cell state.
template <class Math>
struct StandardActivations {
  static constexpr bool kSelected = false;
  using V = typename Math::Value;
  using ValueAndSlope = typename ActivationMath<Math>::ValueAndSlope;

  static TF_LSTM_OPS_INLINE V Gate(LstmGate p, V z, const CellOptions*) {
    if (p == kGateC) return Math::Tanh(z);
    return Math::Sigmoid(z);
  }
  static TF_LSTM_OPS_INLINE V State(V cs, const CellOptions*) {
    return Math::Tanh(cs);
  }
  static TF_LSTM_OPS_INLINE ValueAndSlope RestoreGate(LstmGate p, V y,
                                                      const CellOptions*) {
    if (p == kGateC) return {y, 1 - y * y};
    return {y, y - y * y};
  }
  static TF_LSTM_OPS_INLINE V StateSlope(V, V co, const CellOptions*) {
    return 1 - co * co;
  }
  static TF_LSTM_OPS_INLINE bool SavesArgument(LstmGate, const CellOptions*) {
    return false;
  }
};

// The functions that CellOptions::activations selects.
template <class Math>
struct SelectedActivations {
  static constexpr bool kSelected = true;
  using V = typename Math::Value;
  using Functions = ActivationMath<Math>;
  using ValueAndSlope = typename Functions::ValueAndSlope;

  static TF_LSTM_OPS_INLINE V Gate(LstmGate p, V z, const CellOptions* with) {
    const LstmActivations& f = with->activations;
    return Functions::Activate(f.gate[p], Functions::Bounded(z, f.bound),
                               f.numbers[p == kGateC ? 1 : 0]);
  }
  static TF_LSTM_OPS_INLINE V State(V cs, const CellOptions* with) {
    const LstmActivations& f = with->activations;
    return Functions::Activate(f.state, Functions::Bounded(cs, f.bound),
                               f.numbers[2]);
  }
  static TF_LSTM_OPS_INLINE ValueAndSlope RestoreGate(LstmGate p, V saved,
                                                      const CellOptions* with) {
    return Functions::Restore(with->activations.gate[p], saved);
  }
  static TF_LSTM_OPS_INLINE V StateSlope(V cs, V co, const CellOptions* with) {
    const Activation g = with->activations.state;
    return Functions::Restore(g, NeedsArgument(g) ? cs : co).slope;
  }
  static TF_LSTM_OPS_INLINE bool SavesArgument(LstmGate p,
                                               const CellOptions* with) {
    return NeedsArgument(with->activations.gate[p]);
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELL_ACTIVATIONS_H_
