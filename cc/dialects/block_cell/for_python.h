// The function of the block-cell dialect that Python calls through ctypes.
#ifndef TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FOR_PYTHON_H_
#define TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FOR_PYTHON_H_

#include "backends/cpu/for_python.h"

// Registers the kernels of LSTMBlockCell, BlockLSTM and their gradients, in
// half and float, under the stock names with a higher priority than the stock
// kernels. From then on TensorFlow creates these kernels, until the process
// ends. A second call does nothing and returns the first result. Returns null,
// or the error message, which lives as long as the process.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_override_stock();

#endif  // TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FOR_PYTHON_H_
