// Repetition: a sequence of equal steps.
#include "session/layers/layer_kinds.h"
#include "session/layers/repeat_rows.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Repetition final : public Layer {
 public:
  explicit Repetition(int64_t times) : times_(times) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireRank(in[0], 2, error)) return false;
    out[0] = SequenceOf(in[0].dims[0], times_, in[0].last());
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& in = call.in[0].shape;
    RepeatRows(call.in[0].floats(), in.dims[0], in.last(), times_, call.threads,
               call.out[0].floats());
  }

  Streaming streaming() const override { return Streaming::kNeedsSequence; }

 private:
  const int64_t times_;
};

}  // namespace

std::unique_ptr<Layer> ReadRepetition(NodeReader* reader) {
  const int64_t times = reader->Int(0, "number of steps", 1, kMaxSize);
  if (!reader->ok()) return nullptr;
  return std::make_unique<Repetition>(times);
}

}  // namespace tf_lstm_ops::session
