// ActivationFunction: a function of a dense, convolution or activation layer.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_
#define TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_

#include <cstdint>

#include "session/node_reader.h"

namespace tf_lstm_ops::session {

// The numbers of the functions that are not values of core's Activation; see
// docs/reference/session_file.md.
enum Function : uint32_t {
  kSoftmax = 16,
  kReluWith = 17,
  kEluWith = 18,
  kCelu = 19,
  kSelu = 20,
  kSoftplus = 21,
  kSquareplus = 22,
  kSoftShrink = 23,
  kHardShrink = 24,
  kTanhShrink = 25,
  kThreshold = 26,
  kSparsePlus = 27,
  kSparseSigmoid = 28,
  kExponential = 29,
  kHardSilu = 30,
  kMish = 31,
  kLogSigmoid = 32,
  kLogSoftmax = 33,
  kGeluTanh = 34,
  kPRelu = 35,
};

struct ActivationFunction {
  uint32_t number = 0;
  float a = 0, b = 0, c = 0;

  bool is_linear() const { return number == 0; }
  // Whether an element depends on the others of its row.
  bool is_of_rows() const {
    return number == kSoftmax || number == kLogSoftmax;
  }
  // y = f(x), [rows, width]. y may be x. Not for kPRelu. The bits of a row do
  // not depend on the number of rows.
  void Apply(const float* x, int64_t rows, int64_t width, float* y) const;
  // About the nanoseconds of an element, for the number of threads.
  double element_time() const;
};

// Reads `activation` and `numbers`, of functions up to `last`.
ActivationFunction ReadFunction(NodeReader* reader, uint32_t last = kGeluTanh);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_ACTIVATION_FUNCTION_H_
