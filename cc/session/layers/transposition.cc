// Transposition of the axes behind the batch.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

// An axis of the output, with its distances in the input and the output.
struct Axis {
  int64_t size, x_stride, y_stride;
};

// y[i, j] = x[i, j], in squares whose cache lines stay in the L1 cache.
void CopyPlane(const Axis& i_axis, const Axis& j_axis, const float* x,
               float* y) {
  if (j_axis.x_stride == 1) {
    for (int64_t i = 0; i < i_axis.size; ++i) {
      std::copy_n(x + i * i_axis.x_stride, j_axis.size,
                  y + i * i_axis.y_stride);
    }
    return;
  }
  constexpr int64_t kSquare = 16;
  for (int64_t i0 = 0; i0 < i_axis.size; i0 += kSquare) {
    const int64_t i_end = Min(i0 + kSquare, i_axis.size);
    for (int64_t j0 = 0; j0 < j_axis.size; j0 += kSquare) {
      const int64_t j_end = Min(j0 + kSquare, j_axis.size);
      for (int64_t i = i0; i < i_end; ++i) {
        const float* from = x + i * i_axis.x_stride;
        float* to = y + i * i_axis.y_stride;
        for (int64_t j = j0; j < j_end; ++j) to[j] = from[j * j_axis.x_stride];
      }
    }
  }
}

class Transposition final : public Layer {
 public:
  // dims[k] is the axis of the input that becomes axis k + 1.
  explicit Transposition(const Shape& axes) : axes_(axes) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireRank(in[0], axes_.rank + 1, error)) return false;
    out[0] = in[0];
    for (int k = 0; k < axes_.rank; ++k) {
      out[0].dims[k + 1] = in[0].dims[axes_.dims[k]];
    }
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& in = call.in[0].shape;
    const Shape& out = call.out[0].shape;
    if (in.Count() == 0) return;
    Axis axes[kMaxRank];
    for (int k = 0; k < in.rank; ++k) {
      const auto of_x = k == 0 ? 0 : static_cast<int>(axes_.dims[k - 1]);
      axes[k] = {out.dims[k], in.Count(of_x + 1, in.rank),
                 out.Count(k + 1, out.rank)};
    }
    // A plane has the last axes of the output and of the input. Where these are
    // one, the other axis of the plane is the one before it.
    const int last = in.rank - 1;
    int other = last - 1;
    for (int k = 0; k < last; ++k) {
      if (axes[k].x_stride == 1 && axes[k].size > 1) other = k;
    }
    std::swap(axes[other], axes[last - 1]);
    RunPlanes(axes, last - 1, call);
  }

  Streaming streaming() const override {
    return axes_.dims[0] == 1 ? Streaming::kByStep : Streaming::kNeedsSequence;
  }

 private:
  // Copies the planes of the last two axes, behind `outer` others.
  static void RunPlanes(const Axis* axes, int outer, const LayerCall& call) {
    const Axis &i_axis = axes[outer], &j_axis = axes[outer + 1];
    int64_t planes = 1;
    for (int k = 0; k < outer; ++k) planes *= axes[k].size;
    ForRows(planes, i_axis.size * j_axis.size, kElementTime, call.threads,
            [&](int64_t first, int64_t count) {
              for (int64_t p = first; p < first + count; ++p) {
                const float* x = call.in[0].floats();
                float* y = call.out[0].floats();
                int64_t rest = p;
                for (int k = outer - 1; k >= 0; --k) {
                  const int64_t at = rest % axes[k].size;
                  rest /= axes[k].size;
                  x += at * axes[k].x_stride;
                  y += at * axes[k].y_stride;
                }
                CopyPlane(i_axis, j_axis, x, y);
              }
            });
  }

  const Shape axes_;
};

}  // namespace

std::unique_ptr<Layer> ReadTransposition(NodeReader* reader) {
  const int64_t count = reader->Int(0, "number of axes", 1, kMaxDims);
  Shape axes;
  uint32_t seen = 0;
  for (int k = 1; k <= count; ++k) {
    const int64_t axis = reader->Int(k, "axis", 1, count);
    axes.Append(axis);
    if (seen >> axis & 1) {
      reader->Fail("ints[%d], axis, is %lld, which is there twice", k,
                   static_cast<long long>(axis));
    }
    seen |= uint32_t{1} << axis;
  }
  if (!reader->ok()) return nullptr;
  return std::make_unique<Transposition>(axes);
}

}  // namespace tf_lstm_ops::session
