// Convolution over time, as a product of windows and the kernel.
#include <algorithm>
#include <vector>

#include "backends/cpu/frozen_product.h"
#include "session/layers/activation_function.h"
#include "session/layers/bands.h"
#include "session/layers/causal_stream.h"
#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

// The columns of a matrix of one gate from `first` on.
GateMatrices<const float> ColumnsFrom(GateMatrices<const float> matrix,
                                      int64_t first) {
  if (matrix.data) matrix.data += first;
  if (matrix.bfloat16) matrix.bfloat16 += first;
  if (matrix.int8) matrix.int8 += first, matrix.scales += first;
  return matrix;
}

class Convolution final : public CausalLayer {
 public:
  Convolution(const Windows& windows, int64_t channels, int64_t units,
              int64_t groups, const GateMatrices<const float>& kernel,
              const float* bias, const ActivationFunction& function)
      : CausalLayer(windows, channels, units),
        group_channels_(channels / groups),
        group_units_(units / groups),
        function_(function) {
    const int64_t depth = windows.size * group_channels_;
    products_.reserve(groups);
    for (int64_t first = 0; first < units; first += group_units_) {
      products_.emplace_back(ColumnsFrom(kernel, first),
                             bias ? bias + first : nullptr, depth,
                             group_units_);
    }
  }

  void RunBehind(const float* head, const LayerCall& call) const override {
    const Shape& out = call.out[0].shape;
    const int64_t rows = out.dims[0] * out.dims[1];
    if (rows == 0) return;
    const Steps steps = StepsOf(head, call.in[0]);
    const Bands bands = BandsOf(rows, call.threads);
    const bool copies = !has_windows() || !windows_.AreInside(steps.count);
    const BandMemory windows(bands, copies ? depth() : 0, call, 0);
    const BandMemory scratch(bands, products_[0].scratch_floats(), call, 1);
    ForBands(bands, call.threads,
             [&](int64_t first, int64_t count, int thread) {
               RunBand(steps, WindowCursor(first, out.dims[1]), count,
                       windows.Of(thread), scratch.Of(thread),
                       call.out[0].floats() + first * units_);
             });
  }

 private:
  int64_t depth() const { return products_[0].depth(); }
  int64_t groups() const { return static_cast<int64_t>(products_.size()); }
  // Whether the windows within the input are rows of the product.
  bool has_windows() const {
    return products_.size() == 1 &&
           (windows_.dilation == 1 || windows_.size == 1);
  }

  Bands BandsOf(int64_t rows, int threads) const {
    const double time =
        products_[0].row_time() * static_cast<double>(products_.size()) +
        static_cast<double>(units_) * function_.element_time();
    return ProductBands(rows, time, threads);
  }

  void RunBand(const Steps& steps, const WindowCursor& first, int64_t count,
               float* copies, float* scratch, float* y) const {
    const float* window[kBandRows];
    for (int64_t g = 0; g < groups(); ++g) {
      WindowCursor at = first;
      float* copy = copies;
      for (int64_t r = 0; r < count; ++r, at.Next()) {
        const int64_t s = at.t * windows_.stride - steps.before;
        if (has_windows() && s >= 0 && s + windows_.reach() < steps.count) {
          window[r] = steps.At(at.n, s);
          continue;
        }
        window[r] = copy;
        copy = CopyWindow(steps, at.n, s, g * group_channels_, copy);
      }
      products_[g].Run(window, count, y + g * group_units_, units_, scratch);
    }
    if (!function_.is_linear()) function_.Apply(y, count, units_, y);
  }

  // Copies the window at step s, of the channels of a group from `channel` on.
  // Returns the end of the copy.
  float* CopyWindow(const Steps& steps, int64_t n, int64_t s, int64_t channel,
                    float* to) const {
    for (int64_t k = 0; k < windows_.size; ++k, s += windows_.dilation) {
      const float* step = steps.At(n, s);
      to = step ? std::copy_n(step + channel, group_channels_, to)
                : std::fill_n(to, group_channels_, 0.0F);
    }
    return to;
  }

  const int64_t group_channels_, group_units_;
  const ActivationFunction function_;
  std::vector<cpu::FrozenProduct> products_;  // of each group
};

}  // namespace

std::unique_ptr<Layer> ReadConvolution(NodeReader* reader) {
  const int64_t channels = reader->InputSize();
  const int64_t units = reader->Units();
  int64_t groups;
  const Windows windows = ReadConvolutionWindows(reader, true, &groups);
  if (channels % groups != 0 || units % groups != 0) {
    reader->Fail("groups is %lld, must divide input_size %lld and units %lld",
                 static_cast<long long>(groups),
                 static_cast<long long>(channels),
                 static_cast<long long>(units));
  }
  const ActivationFunction function = ReadFunction(reader);
  const GateMatrices<const float> kernel =
      reader->Matrix(0, kKernel, windows.size * (channels / groups), units);
  const float* bias = reader->Array(0, kBias, false, {units});
  if (!reader->ok()) return nullptr;
  return std::make_unique<Convolution>(windows, channels, units, groups, kernel,
                                       bias, function);
}

}  // namespace tf_lstm_ops::session
