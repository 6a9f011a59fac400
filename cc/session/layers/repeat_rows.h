// RepeatRows: for repetition and upsampling.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_REPEAT_ROWS_H_
#define TF_LSTM_OPS_SESSION_LAYERS_REPEAT_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "session/layers/bands.h"

namespace tf_lstm_ops::session {

// y [rows, times, width]: each row of x [rows, width], `times` times.
inline void RepeatRows(const float* x, int64_t rows, int64_t width,
                       int64_t times, int threads, float* y) {
  if (rows == 0 || width == 0 || times == 0) return;
  ForRows(rows * times, width, kElementTime, threads,
          [&](int64_t first, int64_t count) {
            for (int64_t r = first; r < first + count; ++r) {
              std::copy_n(x + r / times * width, width, y + r * width);
            }
          });
}

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_REPEAT_ROWS_H_
