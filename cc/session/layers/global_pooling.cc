// Pooling over all steps, or to one of them.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/pool_steps.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

// The first of `ints`.
enum class Pool : int64_t { kMaximum, kAverage, kLastStep, kFirstStep, kSum };

class GlobalPooling final : public Layer {
 public:
  GlobalPooling(Pool pool, bool keeps_time)
      : pool_(pool), keeps_time_(keeps_time) {}

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override {
    if (!RequireRank(in[0], 3, error)) return false;
    if (pool_ != Pool::kAverage && in_count > 1 && in[1].rank > 0) {
      return Fail(error, error->code, "only an average has a mask");
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
    ForRows(in.dims[0], (reads_one_step() ? 1 : steps) * channels, kElementTime,
            call.threads, [&](int64_t first, int64_t count) {
              for (int64_t n = first; n < first + count; ++n) {
                RunRow(call.in[0].floats() + n * steps * channels, steps,
                       channels, valid ? valid + n * steps : nullptr,
                       call.out[0].floats() + n * channels);
              }
            });
  }

  Streaming streaming() const override {
    return takes_last_step() ? Streaming::kByStep : Streaming::kNeedsSequence;
  }
  bool takes_last_step() const override { return pool_ == Pool::kLastStep; }

 private:
  bool reads_one_step() const {
    return pool_ == Pool::kLastStep || pool_ == Pool::kFirstStep;
  }

  void RunRow(const float* x, int64_t steps, int64_t channels,
              const bool* valid, float* y) const {
    if (pool_ == Pool::kAverage) {
      MeanOfSteps(x, steps, channels, valid, y);
    } else if (pool_ == Pool::kMaximum) {
      MaxOfSteps(x, steps, channels, y);
    } else if (pool_ == Pool::kSum) {
      SumOfSteps(x, steps, channels, y);
    } else if (steps == 0) {
      std::fill_n(y, channels, 0.0F);
    } else {
      const int64_t step = pool_ == Pool::kLastStep ? steps - 1 : 0;
      std::copy_n(x + step * channels, channels, y);
    }
  }

  const Pool pool_;
  const bool keeps_time_;
};

}  // namespace

std::unique_ptr<Layer> ReadGlobalPooling(NodeReader* reader) {
  const auto pool = static_cast<Pool>(reader->Int(0, "kind of pooling", 0, 4));
  const bool keeps_time = reader->Int(1, "whether time stays", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<GlobalPooling>(pool, keeps_time);
}

}  // namespace tf_lstm_ops::session
