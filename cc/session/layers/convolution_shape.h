// Windows of a convolution or a pooling over time.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_CONVOLUTION_SHAPE_H_
#define TF_LSTM_OPS_SESSION_LAYERS_CONVOLUTION_SHAPE_H_

#include <cstdint>

#include "session/error.h"
#include "session/layer.h"
#include "session/node_reader.h"

namespace tf_lstm_ops::session {

struct Windows {
  int64_t size = 1, stride = 1, dilation = 1;
  bool is_same = false;  // the padding depends on the number of steps
  int64_t before = 0, behind = 0;

  // Steps from the first one of a window to the last one.
  int64_t reach() const { return (size - 1) * dilation; }
  // Padding before `steps` steps.
  int64_t Before(int64_t steps) const;
  // The number of windows; not positive if the steps are fewer than a window.
  int64_t Count(int64_t steps) const;
  // Whether all windows lie in the steps.
  bool AreInside(int64_t steps) const;
  // Sets *out to Count(steps), kUnknown if `steps` is. Fails where there is no
  // window, unless there are no steps.
  bool Infer(int64_t steps, int64_t* out, Error* error) const;
};

// Reads `ints` of a convolution, or of one without groups: *groups is then 1.
Windows ReadConvolutionWindows(NodeReader* reader, bool has_groups,
                               int64_t* groups);
// Reads the first three of `ints` of a pooling.
Windows ReadPoolingWindows(NodeReader* reader);

// The input of a convolution: the steps of each sequence, and those before.
struct Steps {
  const float* x;     // [N, count, channels]
  const float* head;  // [N, before, channels]; null: zeros
  int64_t count, before, channels;

  // Step s of sequence n, from -before on. Null where it is padding with zeros.
  const float* At(int64_t n, int64_t s) const {
    if (s >= 0) return s < count ? x + (n * count + s) * channels : nullptr;
    return head ? head + (n * before + before + s) * channels : nullptr;
  }
};

// Window r of all sequences, of those with `count` windows each.
struct WindowCursor {
  int64_t n, t, count;

  WindowCursor(int64_t r, int64_t count)
      : n(r / count), t(r % count), count(count) {}
  void Next() {
    if (++t == count) t = 0, ++n;
  }
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_CONVOLUTION_SHAPE_H_
