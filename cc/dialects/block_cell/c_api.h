// What Python's ctypes calls of the block-cell dialect.
#ifndef TF_LSTM_OPS_DIALECTS_BLOCK_CELL_C_API_H_
#define TF_LSTM_OPS_DIALECTS_BLOCK_CELL_C_API_H_

#include "backends/cpu/c_api.h"

// Registers the kernels of LSTMBlockCell, BlockLSTM and their gradients in half
// and float under the stock names, above stock's own: from then on TensorFlow
// makes these, until the process ends. A second call does nothing. Null, or
// the error, which stays valid.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_override_stock();

#endif  // TF_LSTM_OPS_DIALECTS_BLOCK_CELL_C_API_H_
