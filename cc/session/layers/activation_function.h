// ActivationFunction: a function of a dense, convolution or activation layer.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_
#define TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_

#include <cstdint>

#include "core/functions.h"
#include "session/node_reader.h"

namespace tf_lstm_ops::session {

struct ActivationFunction {
  uint32_t number = 0;  // of core/functions.h
  float a = 0, b = 0, c = 0;

  bool is_linear() const { return number == 0; }
  // Whether an element depends on the others of its row.
  bool is_of_rows() const { return FindFunction(number)->is_of_rows; }
  // About the nanoseconds of an element, for the number of threads.
  double element_time() const {
    return is_linear() ? 0 : FindFunction(number)->element_time;
  }
  // y = f(x), [rows, width]. y may be x. Not for kPRelu. The bits of a row do
  // not depend on the number of rows.
  void Apply(const float* x, int64_t rows, int64_t width, float* y) const;
};

// Reads `activation` and `numbers`, of functions up to `last`.
ActivationFunction ReadFunction(NodeReader* reader, uint32_t last = kGeluTanh);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_
