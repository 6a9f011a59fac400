// ShapeOf: returns the shape of a call's argument by its name. Its callers need
// no TensorFlow.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_SHAPE_OF_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_SHAPE_OF_H_

#include <functional>

#include "core/shape.h"

namespace tf_lstm_ops {

// The rank is unknown where the op has no such argument or the argument is
// absent.
using ShapeOf = std::function<Shape(const char*)>;

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_SHAPE_OF_H_
