// MergeDirections: the output of a recurrent layer of two directions.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_MERGE_DIRECTIONS_H_
#define TF_LSTM_OPS_SESSION_LAYERS_MERGE_DIRECTIONS_H_

#include <algorithm>
#include <cstdint>

#include "session/layers/recurrent.h"

namespace tf_lstm_ops::session {

// Merges rows of hidden_size elements that are x_stride apart into
// y [rows, output_size()].
inline void MergeDirections(const RecurrentFields& layer, const float* forwards,
                            const float* backwards, int64_t x_stride,
                            int64_t rows, float* y) {
  const int64_t width = layer.hidden_size;
  for (int64_t r = 0; r < rows; ++r, y += layer.output_size()) {
    const float* f = forwards + r * x_stride;
    const float* b = backwards + r * x_stride;
    switch (layer.merge) {
      case Merge::kSum:
        for (int64_t k = 0; k < width; ++k) y[k] = f[k] + b[k];
        break;
      case Merge::kProduct:
        for (int64_t k = 0; k < width; ++k) y[k] = f[k] * b[k];
        break;
      case Merge::kAverage:
        for (int64_t k = 0; k < width; ++k) y[k] = (f[k] + b[k]) / 2;
        break;
      default:  // kConcatenate
        std::copy_n(f, width, y);
        std::copy_n(b, width, y + width);
    }
  }
}

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_MERGE_DIRECTIONS_H_
