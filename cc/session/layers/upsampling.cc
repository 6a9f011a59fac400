// Upsampling: each step several times.
#include "session/layers/layer_kinds.h"
#include "session/layers/repeat_rows.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Upsampling final : public Layer {
 public:
  explicit Upsampling(int64_t times) : times_(times) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireRank(in[0], 3, error)) return false;
    int64_t steps = in[0].dims[1];
    if (steps != kUnknown && (__builtin_mul_overflow(steps, times_, &steps) ||
                              steps > kMaxArraySize)) {
      return Fail(error, error->code, "its output is too large for an array");
    }
    out[0] = SequenceOf(in[0].dims[0], steps, in[0].last());
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& in = call.in[0].shape;
    RepeatRows(call.in[0].floats(), in.rows(), in.last(), times_, call.threads,
               call.out[0].floats());
  }

  Streaming streaming() const override {
    return times_ == 1 ? Streaming::kByStep : Streaming::kNeedsSequence;
  }

 private:
  const int64_t times_;
};

}  // namespace

std::unique_ptr<Layer> ReadUpsampling(NodeReader* reader) {
  const int64_t times = reader->Int(0, "number of copies", 1, kMaxSize);
  if (!reader->ok()) return nullptr;
  return std::make_unique<Upsampling>(times);
}

}  // namespace tf_lstm_ops::session
