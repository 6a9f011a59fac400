// Pooling over all steps.
#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/pool_steps.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class GlobalPooling final : public Layer {
 public:
  GlobalPooling(bool is_average, bool keeps_time)
      : is_average_(is_average), keeps_time_(keeps_time) {}

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override {
    if (!RequireRank(in[0], 3, error)) return false;
    if (!is_average_ && in_count > 1 && in[1].rank > 0) {
      return Fail(error, error->code, "the maximum has no mask");
    }
    const int64_t batch = in[0].dims[0];
    out[0] = keeps_time_ ? SequenceOf(batch, 1, in[0].last())
                         : Shape{2, {batch, in[0].last()}};
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& in = call.in[0].shape;
    const int64_t steps = in.dims[1], channels = in.last();
    if (in.dims[0] * channels == 0) return;
    const bool* valid = call.in_count > 1 ? call.in[1].mask() : nullptr;
    ForRows(in.dims[0], steps * channels, kElementTime, call.threads,
            [&](int64_t first, int64_t count) {
              for (int64_t n = first; n < first + count; ++n) {
                const float* x = call.in[0].floats() + n * steps * channels;
                float* y = call.out[0].floats() + n * channels;
                if (is_average_) {
                  MeanOfSteps(x, steps, channels,
                              valid ? valid + n * steps : nullptr, y);
                } else {
                  MaxOfSteps(x, steps, channels, y);
                }
              }
            });
  }

  Streaming streaming() const override { return Streaming::kNeedsSequence; }

 private:
  const bool is_average_, keeps_time_;
};

}  // namespace

std::unique_ptr<Layer> ReadGlobalPooling(NodeReader* reader) {
  const bool is_average = reader->Int(0, "kind of pooling", 0, 1) == 1;
  const bool keeps_time = reader->Int(1, "whether time stays", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<GlobalPooling>(is_average, keeps_time);
}

}  // namespace tf_lstm_ops::session
