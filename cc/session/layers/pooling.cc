// Pooling over windows of time.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/convolution_shape.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/pool_steps.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Pooling final : public Layer {
 public:
  Pooling(const Windows& windows, bool is_average)
      : windows_(windows), is_average_(is_average) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    int64_t steps;
    if (!RequireRank(in[0], 3, error) ||
        !windows_.Infer(in[0].dims[1], &steps, error)) {
      return false;
    }
    out[0] = SequenceOf(in[0].dims[0], steps, in[0].last());
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    const int64_t channels = out.last();
    if (out.Count() == 0) return;
    const double time = kElementTime * static_cast<double>(windows_.size);
    ForRows(out.rows(), channels, time, call.threads,
            [&](int64_t first, int64_t rows) {
              WindowCursor at(first, out.dims[1]);
              float* y = call.out[0].floats() + first * channels;
              for (int64_t r = 0; r < rows; ++r, at.Next()) {
                RunWindow(call.in[0], at, y + r * channels);
              }
            });
  }

  Streaming streaming() const override {
    return windows_.size == 1 && windows_.stride == 1
               ? Streaming::kByStep
               : Streaming::kNeedsSequence;
  }

 private:
  // Of the steps of the window that are not padding.
  void RunWindow(const Tensor& x, const WindowCursor& at, float* y) const {
    const int64_t steps = x.shape.dims[1], channels = x.shape.last();
    const int64_t begin = at.t * windows_.stride - windows_.Before(steps);
    const int64_t first = std::max<int64_t>(begin, 0);
    const int64_t count = std::min(begin + windows_.size, steps) - first;
    const float* from = x.floats() + (at.n * steps + first) * channels;
    if (is_average_) {
      MeanOfSteps(from, count, channels, nullptr, y);
    } else {
      MaxOfSteps(from, count, channels, y);
    }
  }

  const Windows windows_;
  const bool is_average_;
};

}  // namespace

std::unique_ptr<Layer> ReadPooling(NodeReader* reader) {
  const Windows windows = ReadPoolingWindows(reader);
  const bool is_average = reader->Int(3, "kind of pooling", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<Pooling>(windows, is_average);
}

}  // namespace tf_lstm_ops::session
