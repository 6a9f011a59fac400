// Mask of lengths: the first steps of each row, as many as its length says.

#include <algorithm>

#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

// Operands: lengths, an input [N] or [N, 1] of type kInt, and x [N, T, ...].
class MaskOfLengths final : public Layer {
 public:
  Type output_type(int) const override { return Type::kMask; }
  Streaming streaming() const override { return Streaming::kNeedsSequence; }
  const char* needs() const override { return "needs the lengths of rows"; }

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    const Shape& lengths = in[0];
    if (lengths.rank > 1 && (!RequireRank(lengths, 2, error) ||
                             !RequireSize("the last axis of its lengths",
                                          lengths.dims[1], 1, error))) {
      return false;
    }
    if (in[1].rank < 2) {
      return Fail(error, error->code, "its sequence has %d axes, must have 2",
                  in[1].rank);
    }
    out[0].Append(in[1].dims[0]);
    out[0].Append(in[1].dims[1]);
    return true;
  }

  bool CheckValues(const Tensor& lengths, Error* error) const override {
    const int64_t count = lengths.shape.Count();
    for (int64_t k = 0; k < count; ++k) {
      if (lengths.ints()[k] >= 0) continue;
      return Fail(error, kInvalidArgument,
                  "length [%lld] is %d, must not be negative",
                  static_cast<long long>(k), lengths.ints()[k]);
    }
    return true;
  }

  // Steps behind the sequence are not there: a length may be larger.
  void Run(const LayerCall& call) const override {
    const int64_t batch = call.in[1].shape.dims[0];
    const int64_t time = call.in[1].shape.dims[1];
    bool* mask = call.out[0].mask();
    for (int64_t b = 0; b < batch; ++b, mask += time) {
      const int64_t length = std::min<int64_t>(call.in[0].ints()[b], time);
      std::fill_n(mask, length, true);
      std::fill_n(mask + length, time - length, false);
    }
  }
};

}  // namespace

std::unique_ptr<Layer> ReadMaskOfLengths(NodeReader* reader) {
  if (!reader->ok()) return nullptr;
  return std::make_unique<MaskOfLengths>();
}

}  // namespace tf_lstm_ops::session
