// Masking: marks the steps whose features are all equal to a value.

#include <algorithm>

#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

class Masking : public Layer {
 public:
  Masking(float mask_value, int64_t width)
      : mask_value_(mask_value), width_(width) {}

  int output_count() const override { return 2; }
  Type output_type(int k) const override {
    return k == 0 ? Type::kFloat : Type::kMask;
  }

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireRank(in[0], 3, error) ||
        (width_ > 0 &&
         !RequireSize("its input's last axis", in[0].dims[2], width_, error))) {
      return false;
    }
    out[0] = in[0];
    out[1].Append(in[0].dims[0]);
    out[1].Append(in[0].dims[1]);
    return true;
  }

  // y = x, but 0 in masked steps.
  void Run(const LayerCall& call) const override {
    const int64_t width = call.in[0].shape.dims[2];
    const int64_t rows = call.in[0].shape.rows();
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    bool* valid = call.out[1].mask();
    for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
      valid[r] = std::any_of(
          x, x + width, [this](float value) { return value != mask_value_; });
      if (valid[r]) {
        std::copy_n(x, width, y);
      } else {
        std::fill_n(y, width, 0.0F);
      }
    }
  }

 private:
  const float mask_value_;
  const int64_t width_;  // 0: any
};

}  // namespace

std::unique_ptr<Layer> ReadMasking(NodeReader* reader) {
  const auto mask_value = static_cast<float>(reader->Number1());
  const int64_t width = reader->InputSize(0);
  reader->Units(width, width);
  reader->HiddenSize(width, width);
  reader->Activation(0, 0);
  if (!reader->ok()) return nullptr;
  return std::make_unique<Masking>(mask_value, width);
}

}  // namespace tf_lstm_ops::session
