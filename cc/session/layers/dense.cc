// Dense layers: f(x W + bias).
#include "backends/cpu/frozen_product.h"
#include "session/layers/activation_function.h"
#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Dense final : public Layer {
 public:
  Dense(const GateMatrices<const float>& kernel, const float* bias,
        int64_t depth, int64_t units, const ActivationFunction& function)
      : product_(kernel, bias, depth, units), function_(function) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (!RequireChannels(in[0], product_.depth(), error)) return false;
    out[0] = WithLast(in[0], product_.columns());
    return true;
  }

  void Run(const LayerCall& call) const override {
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    const int64_t depth = product_.depth(), units = product_.columns();
    const double time = product_.row_time() +
                        static_cast<double>(units) * function_.element_time();
    const Bands bands =
        ProductBands(call.in[0].shape.rows(), time, call.threads);
    const BandMemory scratch(bands, product_.scratch_floats(), call, 0);
    ForBands(bands, call.threads, [&](int64_t first, int64_t rows, int thread) {
      const float* row[kBandRows];
      for (int64_t r = 0; r < rows; ++r) row[r] = x + (first + r) * depth;
      float* to = y + first * units;
      product_.Run(row, rows, to, units, scratch.Of(thread));
      if (!function_.is_linear()) function_.Apply(to, rows, units, to);
    });
  }

 private:
  const cpu::FrozenProduct product_;
  const ActivationFunction function_;
};

}  // namespace

std::unique_ptr<Layer> ReadDense(NodeReader* reader) {
  const int64_t depth = reader->InputSize();
  const int64_t units = reader->Units();
  reader->HiddenSize(units, units);
  const ActivationFunction function = ReadFunction(reader);
  const GateMatrices<const float> kernel =
      reader->Matrix(0, kKernel, depth, units);
  const float* bias = reader->Array(0, kBias, false, {units});
  if (!reader->ok()) return nullptr;
  return std::make_unique<Dense>(kernel, bias, depth, units, function);
}

}  // namespace tf_lstm_ops::session
