// The layers without states and weights, on rows: activation, masking, and the
// merge of two directions.
#ifndef TF_LSTM_OPS_SESSION_SIMPLE_LAYERS_H_
#define TF_LSTM_OPS_SESSION_SIMPLE_LAYERS_H_

#include <cstdint>

#include "session/file_format.h"

namespace tf_lstm_ops::session {

// y = f(x), [rows, width]. y may be x.
void Activate(uint32_t function, const float* x, int64_t rows, int64_t width,
              float* y);

// Sets valid[r] to whether an element of row r of x [rows, width] differs from
// mask_value. y = x, but 0 in rows that are not valid.
void RunMasking(const Layer& layer, const float* x, int64_t rows, float* y,
                bool* valid);

// Merges the outputs of two directions, rows of `width` elements that are
// x_stride apart, into y [rows, layer.output_size()].
void MergeDirections(const Layer& layer, const float* forwards,
                     const float* backwards, int64_t x_stride, int64_t rows,
                     float* y);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_SIMPLE_LAYERS_H_
