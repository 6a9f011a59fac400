// Depthwise convolution over time: each channel has its own kernels.
#include <algorithm>
#include <vector>

#include "session/layers/activation_function.h"
#include "session/layers/bands.h"
#include "session/layers/causal_stream.h"
#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

class Depthwise final : public CausalLayer {
 public:
  Depthwise(const Windows& windows, int64_t channels, int64_t units,
            const float* kernel, const float* bias,
            const ActivationFunction& function)
      : CausalLayer(windows, channels, units),
        kernel_(kernel),
        bias_(bias),
        function_(function),
        zeros_(channels) {}

  void RunBehind(const float* head, const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    const int64_t rows = out.dims[0] * out.dims[1];
    if (rows == 0) return;
    const Steps steps = StepsOf(head, call.in[0]);
    const double time = function_.element_time() +
                        kElementTime * static_cast<double>(windows_.size);
    ForRows(rows, units_, time, call.threads,
            [&](int64_t first, int64_t count) {
              WindowCursor at(first, out.dims[1]);
              float* y = call.out[0].floats() + first * units_;
              for (int64_t r = 0; r < count; ++r, at.Next()) {
                RunWindow(steps, at, y + r * units_);
              }
              if (!function_.is_linear()) function_.Apply(y, count, units_, y);
            });
  }

 private:
  void RunWindow(const Steps& steps, const WindowCursor& at, float* y) const {
    int64_t s = at.t * windows_.stride - steps.before;
    std::fill_n(y, units_, 0.0F);
    const float* kernel = kernel_;
    for (int64_t k = 0; k < windows_.size; ++k, s += windows_.dilation) {
      // Zeros are multiplied too, as those of a stream's first steps are.
      const float* x = steps.At(at.n, s);
      AddProducts(x ? x : zeros_.data(), kernel, y);
      kernel += units_;
    }
    for (int64_t k = 0; bias_ && k < units_; ++k) y[k] += bias_[k];
  }

  // y[c, m] += x[c] kernel[c, m]
  void AddProducts(const float* __restrict x, const float* __restrict kernel,
                   float* __restrict y) const {
    const int64_t multiplier = units_ / channels_;
    if (multiplier == 1) {
      for (int64_t c = 0; c < channels_; ++c) y[c] += x[c] * kernel[c];
      return;
    }
    for (int64_t c = 0; c < channels_; ++c) {
      for (int64_t m = 0; m < multiplier; ++m) *y++ += x[c] * *kernel++;
    }
  }

  const float* const kernel_;
  const float* const bias_;
  const ActivationFunction function_;
  const std::vector<float> zeros_;
};

}  // namespace

std::unique_ptr<Layer> ReadDepthwise(NodeReader* reader) {
  const int64_t channels = reader->InputSize();
  const int64_t units = reader->Units();
  int64_t groups;
  const Windows windows = ReadConvolutionWindows(reader, false, &groups);
  if (units % channels != 0) {
    reader->Fail("units is %lld, must be a multiple of input_size %lld",
                 static_cast<long long>(units),
                 static_cast<long long>(channels));
  }
  const ActivationFunction function = ReadFunction(reader);
  const float* kernel = reader->Array(0, kKernel, true, {windows.size, units});
  const float* bias = reader->Array(0, kBias, false, {units});
  if (!reader->ok()) return nullptr;
  return std::make_unique<Depthwise>(windows, channels, units, kernel, bias,
                                     function);
}

}  // namespace tf_lstm_ops::session
