// Combination of masks: where all of them are valid, or any.

#include <algorithm>

#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

class MaskCombination : public Layer {
 public:
  explicit MaskCombination(bool is_any) : is_any_(is_any) {}

  Type output_type(int) const override { return Type::kMask; }

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override {
    for (int k = 0; k < in_count; ++k) {
      if (in[k].rank == 0) continue;
      if (!RequireRank(in[k], 2, error) ||
          (in[0].dims[1] != kUnknown &&
           !RequireSize("a mask's time", in[k].dims[1], in[0].dims[1],
                        error))) {
        return false;
      }
    }
    out[0] = in[0];
    return true;
  }

  void Run(const LayerCall& call) const override {
    const int64_t count = call.out[0].shape.Count();
    bool* y = call.out[0].mask();
    std::fill_n(y, count, !is_any_);
    for (int k = 0; k < call.in_count; ++k) {
      const bool* mask = call.in[k].mask();
      for (int64_t i = 0; i < count; ++i) {
        const bool valid = !mask || mask[i];
        y[i] = is_any_ ? y[i] || valid : y[i] && valid;
      }
    }
  }

 private:
  const bool is_any_;
};

}  // namespace

std::unique_ptr<Layer> ReadMaskCombination(NodeReader* reader) {
  const bool is_any = reader->Int(0, "mode", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<MaskCombination>(is_any);
}

}  // namespace tf_lstm_ops::session
