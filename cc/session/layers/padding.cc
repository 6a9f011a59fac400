// Padding: steps before and behind a sequence. A negative number crops.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/convolution_shape.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Padding final : public Layer {
 public:
  Padding(int64_t before, int64_t behind, bool reflects)
      : before_(before), behind_(behind), reflects_(reflects) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireRank(in[0], 3, error)) return false;
    const int64_t steps = in[0].dims[1];
    out[0] = SequenceOf(in[0].dims[0], kUnknown, in[0].last());
    if (steps == kUnknown) return true;
    if (!RequireSummable(steps, error)) return false;
    out[0].dims[1] = steps + before_ + behind_;
    const int64_t least = MinSteps();
    return steps >= least ||
           Fail(error, error->code,
                "its input has %lld steps, must have %lld or more",
                static_cast<long long>(steps), static_cast<long long>(least));
  }

  void Run(const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    const int64_t channels = out.last();
    if (out.Count() == 0) return;
    ForRows(out.rows(), channels, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              WindowCursor at(first, out.dims[1]);
              float* y = call.out[0].floats() + first * channels;
              for (int64_t r = 0; r < rows; ++r, at.Next()) {
                CopyStep(call.in[0], at, y + r * channels);
              }
            });
  }

  Streaming streaming() const override {
    return before_ == 0 && behind_ == 0 ? Streaming::kByStep
                                        : Streaming::kNeedsSequence;
  }

 private:
  // A crop needs its steps. A reflection does not repeat the step at the edge.
  int64_t MinSteps() const {
    const int64_t cropped =
        -std::min<int64_t>(before_, 0) - std::min<int64_t>(behind_, 0);
    const int64_t padded = std::max({before_, behind_, int64_t{0}});
    return reflects_ && padded > 0 ? std::max(cropped, padded + 1) : cropped;
  }

  void CopyStep(const Tensor& x, const WindowCursor& at, float* y) const {
    const int64_t steps = x.shape.dims[1], channels = x.shape.last();
    int64_t s = at.t - before_;
    if (reflects_) {
      if (s < 0) s = -s;
      if (s >= steps) s = 2 * (steps - 1) - s;
    }
    if (s < 0 || s >= steps) {
      std::fill_n(y, channels, 0.0F);
    } else {
      std::copy_n(x.floats() + (at.n * steps + s) * channels, channels, y);
    }
  }

  const int64_t before_, behind_;
  const bool reflects_;
};

}  // namespace

std::unique_ptr<Layer> ReadPadding(NodeReader* reader) {
  const int64_t before = reader->Int(0, "steps before", -kMaxSize, kMaxSize);
  const int64_t behind = reader->Int(1, "steps behind", -kMaxSize, kMaxSize);
  const bool reflects = reader->Int(2, "kind of padding", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<Padding>(before, behind, reflects);
}

}  // namespace tf_lstm_ops::session
