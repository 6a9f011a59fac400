// CellOptions: the parameters of the cells that are not tensors. Device code
// includes this header.
#ifndef TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
#define TF_LSTM_OPS_CORE_CELL_OPTIONS_H_

#include "core/activation.h"

namespace tf_lstm_ops {

struct CellOptions {
  LstmActivations activations;  // read by CustomLstmCell only
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELL_OPTIONS_H_
