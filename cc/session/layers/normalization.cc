// Layer normalisation and RMS normalisation over the last axis.
#include <cmath>

#include "session/layers/bands.h"
#include "session/layers/elementwise.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

// The sum of f(x[k]) in double, in an order that depends on n only: the sums of
// every eighth element, then their sum.
template <class F>
double Sum(const float* x, int64_t n, const F& f) {
  constexpr int kLanes = 8;
  double sums[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += f(x[k + lane]);
  }
  for (int lane = 0; k + lane < n; ++lane) sums[lane] += f(x[k + lane]);
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}

class Normalization final : public Layer {
 public:
  Normalization(const float* gamma, const float* beta, int64_t channels,
                double epsilon, bool is_rms)
      : gamma_(gamma),
        beta_(beta),
        channels_(channels),
        epsilon_(epsilon),
        is_rms_(is_rms) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    return RequireChannels(in[0], channels_, error);
  }

  void Run(const LayerCall& call) const override {
    constexpr double kTime = 1.5;  // of an element
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    ForRows(call.in[0].shape.rows(), channels_, kTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t r = first; r < first + rows; ++r) {
                RunRow(x + r * channels_, y + r * channels_);
              }
            });
  }

  bool works_in_place() const override { return true; }

 private:
  void RunRow(const float* x, float* y) const {
    const auto n = static_cast<double>(channels_);
    const auto identity = [](float z) { return static_cast<double>(z); };
    const double mean = is_rms_ ? 0 : Sum(x, channels_, identity) / n;
    const auto square = [mean](float z) { return (z - mean) * (z - mean); };
    const double variance = Sum(x, channels_, square) / n;
    const double scale = 1 / std::sqrt(variance + epsilon_);
    Map(x, channels_, y, [=](float z, int64_t) {
      return static_cast<float>((z - mean) * scale);
    });
    if (gamma_) {
      Map(y, channels_, y,
          [gamma = gamma_](float z, int64_t c) { return z * gamma[c]; });
    }
    if (beta_) {
      Map(y, channels_, y,
          [beta = beta_](float z, int64_t c) { return z + beta[c]; });
    }
  }

  const float* const gamma_;
  const float* const beta_;
  const int64_t channels_;
  const double epsilon_;
  const bool is_rms_;
};

}  // namespace

std::unique_ptr<Layer> ReadNormalization(NodeReader* reader) {
  const int64_t channels = reader->InputSize();
  const bool is_rms = reader->Int(0, "kind of normalization", 0, 1) == 1;
  const double epsilon = reader->Epsilon();
  const float* gamma = reader->Array(0, kInputGamma, false, {channels});
  const float* beta = reader->Array(0, kBias, false, {channels});
  if (!reader->ok()) return nullptr;
  return std::make_unique<Normalization>(gamma, beta, channels, epsilon,
                                         is_rms);
}

}  // namespace tf_lstm_ops::session
