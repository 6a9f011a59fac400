// reserve_space of the CudnnRNN ops on a Metal device. It has the values in the
// layout of metal::MakeReserveLayout, then a ReserveHeader. Each byte of the
// header is one element; every element type holds 0 to 255 exactly.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_METAL_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_METAL_H_

#include <cstdint>

#include "backends/metal/multi_layer_graph.h"
#include "core/multi_layer_rnn.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cudnn_rnn {

constexpr int64_t kMetalHeaderSize = sizeof(ReserveHeader);  // in elements

// Returns the size of reserve_space in elements.
inline int64_t MetalReserveSize(const MultiLayerRnn& rnn, float dropout) {
  return metal::MakeReserveLayout(rnn, dropout).size() + kMetalHeaderSize;
}

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_METAL_H_
