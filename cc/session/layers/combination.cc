// Combinations of elements, whose operands are broadcast.
#include <algorithm>

#include "session/layers/bands.h"
#include "session/layers/elementwise.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

enum Operation { kSum, kDifference, kProduct, kAverage, kMaximum, kMinimum };

// y[k] = f(a[k], b[k]), or with b[0] if b is one element. y may be a.
template <class F>
void MapTwo(const float* a, const float* b, bool b_is_one, int64_t n, float* y,
            const F& f) {
  if (b_is_one) {
    const float value = *b;
    Map(a, n, y, [=](float z, int64_t) { return f(z, value); });
  } else {
    Map(a, n, y, [=](float z, int64_t k) { return f(z, b[k]); });
  }
}

class Combination final : public Layer {
 public:
  explicit Combination(Operation operation) : operation_(operation) {}

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override {
    if (operation_ == kDifference && in_count != 2) {
      return Fail(error, error->code, "a difference has 2 operands, not %d",
                  in_count);
    }
    out[0] = in[0];
    for (int k = 1; k < in_count; ++k) {
      if (!RequireRank(in[k], in[0].rank, error)) return false;
      for (int axis = 0; axis < in[0].rank; ++axis) {
        if (!Broadcast(in[k].dims[axis], axis, k, &out[0].dims[axis], error)) {
          return false;
        }
      }
    }
    return true;
  }

  void Run(const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    const int64_t count = out.Count();
    if (count == 0) return;
    const double time = kElementTime * call.in_count;
    const bool are_equal =
        std::all_of(call.in, call.in + call.in_count,
                    [&](const Tensor& x) { return x.shape == out; });
    const int64_t width = are_equal ? 1 : out.last();
    ForRows(count / width, width, time, call.threads,
            [&](int64_t first, int64_t rows) {
              if (are_equal) return RunElements(call, first, rows);
              for (int64_t r = first; r < first + rows; ++r) RunRow(call, r);
            });
  }

 private:
  static bool Broadcast(int64_t size, int axis, int k, int64_t* out,
                        Error* error) {
    // A size that is not known may be 1, so it says nothing.
    if (*out == 1 || (*out == kUnknown && size > 1)) {
      *out = size;
      return true;
    }
    return size == *out || size == 1 || size == kUnknown || *out == kUnknown ||
           Fail(error, error->code,
                "axis %d of operand %d is %lld, must be 1 or %lld", axis, k,
                static_cast<long long>(size), static_cast<long long>(*out));
  }

  // Elements of operands that all have the shape of the output.
  void RunElements(const LayerCall& call, int64_t first, int64_t count) const {
    float* y = call.out[0].floats() + first;
    const float* a = call.in[0].floats() + first;
    for (int k = 1; k < call.in_count; ++k, a = y) {
      Combine(a, call.in[k].floats() + first, false, count, y);
    }
    Finish(call.in_count, count, y);
  }

  // A row of the output.
  void RunRow(const LayerCall& call, int64_t r) const {
    const Shape& out = call.out[0].shape;
    const int64_t width = out.last();
    float* y = call.out[0].floats() + r * width;
    for (int k = 0; k < call.in_count; ++k) {
      const Shape& in = call.in[k].shape;
      const float* from = call.in[k].floats() + RowOf(in, out, r) * in.last();
      const bool is_one = in.last() == 1;
      if (k > 0) {
        Combine(y, from, is_one, width, y);
      } else if (is_one) {
        std::fill_n(y, width, *from);
      } else {
        std::copy_n(from, width, y);
      }
    }
    Finish(call.in_count, width, y);
  }

  // The row of an operand that belongs to row r of the output.
  static int64_t RowOf(const Shape& in, const Shape& out, int64_t r) {
    int64_t row = 0, stride = 1;
    for (int axis = out.rank - 2; axis >= 0; --axis) {
      const int64_t at = r % out.dims[axis];
      r /= out.dims[axis];
      if (in.dims[axis] > 1) row += at * stride;
      stride *= in.dims[axis];
    }
    return row;
  }

  void Combine(const float* a, const float* b, bool b_is_one, int64_t n,
               float* y) const {
    const auto map = [=](auto f) { MapTwo(a, b, b_is_one, n, y, f); };
    switch (operation_) {
      case kDifference:
        return map([](float p, float q) { return p - q; });
      case kProduct:
        return map([](float p, float q) { return p * q; });
      case kMaximum:
        return map([](float p, float q) { return Larger(p, q); });
      case kMinimum:
        return map([](float p, float q) { return Smaller(p, q); });
      default:  // kSum, kAverage
        return map([](float p, float q) { return p + q; });
    }
  }

  void Finish(int operands, int64_t n, float* y) const {
    if (operation_ != kAverage) return;
    const auto count = static_cast<float>(operands);
    Map(y, n, y, [=](float z, int64_t) { return z / count; });
  }

  const Operation operation_;
};

}  // namespace

std::unique_ptr<Layer> ReadCombination(NodeReader* reader) {
  const auto operation =
      static_cast<Operation>(reader->Int(0, "operation", kSum, kMinimum));
  if (!reader->ok()) return nullptr;
  return std::make_unique<Combination>(operation);
}

}  // namespace tf_lstm_ops::session
