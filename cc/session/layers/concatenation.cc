// Concatenation along an axis behind the batch.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

constexpr int kLast = -1;

class Concatenation final : public Layer {
 public:
  explicit Concatenation(int axis) : axis_(axis) {}

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override {
    out[0] = in[0];
    if (!RequireMinRank(in[0], std::max(axis_ + 1, 2), error)) return false;
    const int along = AxisOf(in[0]);
    for (int k = 0; k < in_count; ++k) {
      if (!RequireRank(in[k], in[0].rank, error)) return false;
      for (int axis = 0; axis < in[0].rank; ++axis) {
        if (!Add(in[k].dims[axis], axis, axis == along, k, &out[0].dims[axis],
                 error)) {
          return false;
        }
      }
    }
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    if (out.Count() == 0) return;
    const int along = AxisOf(out);
    const int64_t width = out.Count(along, out.rank);
    ForRows(out.Count(0, along), width, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              float* to = call.out[0].floats() + first * width;
              for (int k = 0; k < call.in_count; ++k) {
                const Shape& in = call.in[k].shape;
                const int64_t size = in.Count(along, in.rank);
                const float* from = call.in[k].floats() + first * size;
                for (int64_t r = 0; r < rows; ++r) {
                  std::copy_n(from + r * size, size, to + r * width);
                }
                to += size;
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
  // Adds operand k to an axis of the output.
  static bool Add(int64_t size, int axis, bool is_along, int k, int64_t* out,
                  Error* error) {
    if (is_along) {
      if (!RequireSummable(size, error)) return false;
      const bool is_known = size != kUnknown && *out != kUnknown;
      if (k > 0) *out = is_known ? *out + size : kUnknown;
      return true;
    }
    if (*out == kUnknown) *out = size;
    return size == *out || size == kUnknown ||
           Fail(error, error->code,
                "axis %d of operand %d is %lld, must be %lld", axis, k,
                static_cast<long long>(size), static_cast<long long>(*out));
  }

  const int axis_;  // or kLast
};

}  // namespace

std::unique_ptr<Layer> ReadConcatenation(NodeReader* reader) {
  const int64_t axis = reader->Int(0, "axis", kLast, kMaxDims);
  if (axis == 0)
    reader->Fail("axis is 0, must be -1 or from 1 to %d", kMaxDims);
  if (!reader->ok()) return nullptr;
  return std::make_unique<Concatenation>(static_cast<int>(axis));
}

}  // namespace tf_lstm_ops::session
