// CellOptions: the parameters of the cells that are not tensors.
// CellParameters: all parameters of a cell, for one unit. Device code includes
// this header.
#ifndef TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
#define TF_LSTM_OPS_CORE_CELL_OPTIONS_H_

#include "core/activation.h"

namespace tf_lstm_ops {

// Layer normalisation; layer_norm_cell.h has the equations.
struct LayerNormOptions {
  double epsilon = 0;
  // Whether the next step reads the normalised cell state.
  bool carries_normalized_state = false;
};

struct CellOptions {
  LstmActivations activations;  // read by cells with SelectedActivations only
  LayerNormOptions layer_norm;  // read by LayerNormCell only
};

// What the equations of a unit read besides its pre-activations and states. V
// is a number, or a vector of units. Every cell gets all members.
template <class V>
struct CellParameters {
  const V* peephole = nullptr;  // [kPreActivations] by gate; null: none
  const V* clip = nullptr;      // bound of cs; null: no clipping
  const CellOptions* options = nullptr;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
