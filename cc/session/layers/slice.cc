// A part of an axis behind the batch, also in the opposite order.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

constexpr int kLast = -1;

class Slice final : public Layer {
 public:
  Slice(int axis, int64_t start, int64_t stop, bool is_reversed)
      : axis_(axis), start_(start), stop_(stop), is_reversed_(is_reversed) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireMinRank(in[0], std::max(axis_ + 1, 2), error)) return false;
    out[0] = in[0];
    int64_t* size = &out[0].dims[AxisOf(in[0])];
    if (*size != kUnknown)
      *size = std::max<int64_t>(End(*size) - Begin(*size), 0);
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape &in = call.in[0].shape, &out = call.out[0].shape;
    if (out.Count() == 0) return;
    const int along = AxisOf(in);
    const int64_t inner = in.Count(along + 1, in.rank);
    const int64_t in_width = in.dims[along] * inner;
    const int64_t width = out.dims[along] * inner;
    const int64_t begin = Begin(in.dims[along]) * inner;
    ForRows(in.Count(0, along), width, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t r = first; r < first + rows; ++r) {
                const float* from = call.in[0].floats() + r * in_width + begin;
                float* to = call.out[0].floats() + r * width;
                if (is_reversed_) {
                  CopyReversed(from, out.dims[along], inner, to);
                } else {
                  std::copy_n(from, width, to);
                }
              }
            });
  }

  Streaming streaming() const override {
    return axis_ == 1 ? Streaming::kNeedsSequence : Streaming::kByStep;
  }

 private:
  int AxisOf(const Shape& shape) const {
    return axis_ == kLast ? shape.rank - 1 : axis_;
  }
  // A negative index counts from the end.
  static int64_t Index(int64_t index, int64_t size) {
    return std::clamp<int64_t>(index < 0 ? size + index : index, 0, size);
  }
  static void CopyReversed(const float* from, int64_t count, int64_t inner,
                           float* to) {
    for (int64_t k = 0; k < count; ++k) {
      std::copy_n(from + (count - 1 - k) * inner, inner, to + k * inner);
    }
  }
  int64_t Begin(int64_t size) const { return Index(start_, size); }
  int64_t End(int64_t size) const { return Index(stop_, size); }

  const int axis_;  // or kLast
  const int64_t start_, stop_;
  const bool is_reversed_;
};

}  // namespace

std::unique_ptr<Layer> ReadSlice(NodeReader* reader) {
  const int64_t axis = reader->Int(0, "axis", kLast, kMaxDims);
  if (axis == 0) {
    reader->Fail("axis is 0, must be -1 or from 1 to %d", kMaxDims);
  }
  const int64_t start = reader->Int(1, "start", -kMaxArraySize, kMaxArraySize);
  const int64_t stop = reader->Int(2, "end", -kMaxArraySize, kMaxArraySize);
  const bool is_reversed = reader->Int(3, "whether it is reversed", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<Slice>(static_cast<int>(axis), start, stop,
                                 is_reversed);
}

}  // namespace tf_lstm_ops::session
