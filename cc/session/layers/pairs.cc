// Functions of pairs of channels: of the first and the second half.
#include <cmath>

#include "backends/cpu/engine.h"
#include "session/layers/bands.h"
#include "session/layers/elementwise.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Pairs final : public Layer {
 public:
  explicit Pairs(bool is_gate) : is_gate_(is_gate) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireMinRank(in[0], 2, error)) return false;
    out[0] = in[0];
    const int64_t size = in[0].last();
    if (size == kUnknown) return true;
    out[0] = WithLast(in[0], size / 2);
    return size % 2 == 0 ||
           Fail(error, error->code,
                "the last axis of its input is %lld, must be even",
                static_cast<long long>(size));
  }

  void Run(const LayerCall& call) const override {
    constexpr double kTime = 1;  // of an element
    const Shape& out = call.out[0].shape;
    const int64_t width = out.last();
    if (out.Count() == 0) return;
    ForRows(out.rows(), width, kTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t r = first; r < first + rows; ++r) {
                const float* a = call.in[0].floats() + 2 * r * width;
                RunRow(a, a + width, width, call.out[0].floats() + r * width);
              }
            });
  }

 private:
  void RunRow(const float* a, const float* b, int64_t n, float* y) const {
    if (is_gate_) {
      SelectedInstructionSet().engine->activate(Activation::kSigmoid, b, y, n);
      Map(y, n, y, [=](float gate, int64_t k) { return a[k] * gate; });
    } else {
      Map(a, n, y,
          [=](float z, int64_t k) { return std::sqrt(z * z + b[k] * b[k]); });
    }
  }

  const bool is_gate_;
};

}  // namespace

std::unique_ptr<Layer> ReadPairs(NodeReader* reader) {
  const bool is_gate = reader->Int(0, "function", 0, 1) == 1;
  if (!reader->ok()) return nullptr;
  return std::make_unique<Pairs>(is_gate);
}

}  // namespace tf_lstm_ops::session
