// Checks of shapes, for Layer::Infer.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_SHAPES_H_
#define TF_LSTM_OPS_SESSION_LAYERS_SHAPES_H_

#include <cstdint>

#include "session/layer.h"

namespace tf_lstm_ops::session {

// Fails unless `in` has at least `rank` axes.
inline bool RequireMinRank(const Shape& in, int rank, Error* error) {
  return in.rank >= rank ||
         Fail(error, error->code, "its input has %d axes, must have %d or more",
              in.rank, rank);
}

// Fails where the last axis of `in` is not `wanted`.
inline bool RequireChannels(const Shape& in, int64_t wanted, Error* error) {
  return RequireMinRank(in, 2, error) &&
         RequireSize("the last axis of its input", in.last(), wanted, error);
}

// Fails where sums with the size may overflow.
inline bool RequireSummable(int64_t size, Error* error) {
  return size <= kMaxArraySize ||
         Fail(error, error->code,
              "an axis of its input has %lld elements, "
              "more than an array may have",
              static_cast<long long>(size));
}

// `in` with another last axis.
inline Shape WithLast(Shape in, int64_t last) {
  in.dims[in.rank - 1] = last;
  return in;
}

// A sequence [N, steps, channels].
inline Shape SequenceOf(int64_t batch, int64_t steps, int64_t channels) {
  return {3, {batch, steps, channels}};
}

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_SHAPES_H_
