// Reshape: the same elements with other axes behind the batch.
#include <algorithm>

#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

// Multiplies by a size that is known. Fails where no array is so large.
bool Multiply(int64_t size, int64_t* product, Error* error) {
  if (!__builtin_mul_overflow(*product, size, product) &&
      *product <= kMaxArraySize) {
    return true;
  }
  return Fail(error, error->code, "its input is too large for an array");
}

class Reshape final : public Layer {
 public:
  // A size of kUnknown is what the others leave.
  explicit Reshape(const Shape& sizes) : sizes_(sizes) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireMinRank(in[0], 1, error)) return false;
    out[0] = {};
    out[0].Append(in[0].dims[0]);
    int64_t sizes = 1, elements = 1;
    int open = 0;  // the axis of the output that has no size of its own
    for (int k = 0; k < sizes_.rank; ++k) {
      if (sizes_.dims[k] == kUnknown) open = k + 1;
      if (sizes_.dims[k] != kUnknown) sizes *= sizes_.dims[k];
      out[0].Append(sizes_.dims[k]);
    }
    for (int k = 1; k < in[0].rank; ++k) {
      if (in[0].dims[k] == kUnknown) return true;
      if (!Multiply(in[0].dims[k], &elements, error)) return false;
    }
    if (open > 0) out[0].dims[open] = elements / sizes;
    return (open > 0 ? elements % sizes == 0 : elements == sizes) ||
           Fail(error, error->code,
                "its input has %lld elements for each element of the batch, "
                "must have %s%lld",
                static_cast<long long>(elements),
                open > 0 ? "a multiple of " : "",
                static_cast<long long>(sizes));
  }

  void Run(const LayerCall& call) const override {
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    if (x != y) std::copy_n(x, call.in[0].shape.Count(), y);
  }

  bool works_in_place() const override { return true; }
  Streaming streaming() const override { return Streaming::kNeedsSequence; }

 private:
  const Shape sizes_;
};

}  // namespace

std::unique_ptr<Layer> ReadReshape(NodeReader* reader) {
  const int64_t count = reader->Int(0, "number of sizes", 1, kMaxDims);
  Shape sizes;
  int64_t product = 1;
  bool is_open = false;
  for (int k = 1; k <= count; ++k) {
    const int64_t size = reader->Int(k, "size", -1, kMaxArraySize);
    sizes.Append(size);
    if (size == 0 || (size == kUnknown && is_open)) {
      reader->Fail("ints[%d], size, is %lld, must be 1 or more, or -1 once", k,
                   static_cast<long long>(size));
    }
    if (size == kUnknown) is_open = true;
    if (size > 0 && (__builtin_mul_overflow(product, size, &product) ||
                     product > kMaxArraySize)) {
      reader->Fail("its sizes are too large for an array");
    }
  }
  if (!reader->ok()) return nullptr;
  return std::make_unique<Reshape>(sizes);
}

}  // namespace tf_lstm_ops::session
