#include "session/layers/causal_stream.h"

#include <algorithm>
#include <cstring>

#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

// The state is the last steps of the input, [B, steps, channels].
class CausalStream final : public StreamLayer {
 public:
  CausalStream(const CausalLayer& layer, int64_t batch)
      : layer_(layer),
        batch_(batch),
        steps_(layer.state_shape(0).dims[0]),
        channels_(layer.state_shape(0).dims[1]) {}

  void Place(cpu::Scratch<float>* memory) override {
    state_ = memory->Take(batch_ * steps_ * channels_);
  }

  void Run(int64_t steps, const LayerCall& call) override {
    layer_.RunBehind(state_, call);
    const int64_t kept = std::max<int64_t>(steps_ - steps, 0);
    const int64_t size = steps_ * channels_, kept_size = kept * channels_;
    const int64_t added = size - kept_size, x_size = steps * channels_;
    const float* x = call.in[0].floats();
    for (int64_t b = 0; b < batch_; ++b) {
      float* state = state_ + b * size;
      std::memmove(state, state + added, kept_size * sizeof(float));
      std::copy_n(x + (b + 1) * x_size - added, added, state + kept_size);
    }
  }

  float* state(int) override { return state_; }

 private:
  const CausalLayer& layer_;
  const int64_t batch_;
  const int64_t steps_, channels_;
  float* state_ = nullptr;
};

}  // namespace

bool CausalLayer::Infer(const Shape* in, int, Shape* out, Error* error) const {
  int64_t steps;
  if (!RequireRank(in[0], 3, error) ||
      !RequireChannels(in[0], channels_, error) ||
      !windows_.Infer(in[0].dims[1], &steps, error)) {
    return false;
  }
  out[0] = SequenceOf(in[0].dims[0], steps, units_);
  return true;
}

Streaming CausalLayer::streaming() const {
  if (windows_.stride > 1) return Streaming::kNeedsSequence;
  if (windows_.is_same) {
    return windows_.size == 1 ? Streaming::kByStep : Streaming::kNeedsSequence;
  }
  if (windows_.before != windows_.reach() || windows_.behind > 0) {
    return Streaming::kNeedsSequence;
  }
  return windows_.size == 1 ? Streaming::kByStep : Streaming::kKeepsState;
}

const char* CausalLayer::needs() const {
  return windows_.stride > 1 ? "has a stride" : "is not causal";
}

int CausalLayer::state_count() const {
  return streaming() == Streaming::kKeepsState ? 1 : 0;
}

Shape CausalLayer::state_shape(int) const {
  return {2, {windows_.reach(), channels_}};
}

std::unique_ptr<StreamLayer> CausalLayer::NewStreamLayer(int64_t batch,
                                                         int) const {
  return std::make_unique<CausalStream>(*this, batch);
}

}  // namespace tf_lstm_ops::session
