// Normalisations of rows, over the last axis: layer normalisation, RMS
// normalisation, and to the length 1. And group normalisation, over time.
#include <algorithm>
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

// Rows of the length 1: x / max(|x|, floor).
class UnitNormalization final : public Layer {
 public:
  UnitNormalization(int64_t channels, double floor)
      : channels_(channels), floor_(floor) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    return channels_ == 0 || RequireChannels(in[0], channels_, error);
  }

  void Run(const LayerCall& call) const override {
    const int64_t rows = call.in[0].shape.rows(), n = call.in[0].shape.last();
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      const double squares =
          Sum(x, n, [](float z) { return static_cast<double>(z) * z; });
      const double length = std::max(std::sqrt(squares), floor_);
      Map(x, n, y,
          [=](float z, int64_t) { return static_cast<float>(z / length); });
    }
  }

  bool works_in_place() const override { return true; }

 private:
  const int64_t channels_;  // 0: any
  const double floor_;
};

// x [N, T, C] in groups of neighbouring channels, each normalised over its
// channels and all steps. Groups of one channel: instance normalisation.
class GroupNormalization final : public Layer {
 public:
  GroupNormalization(const float* gamma, const float* beta, int64_t channels,
                     int64_t groups, double epsilon)
      : gamma_(gamma),
        beta_(beta),
        channels_(channels),
        groups_(groups),
        epsilon_(epsilon) {}

  Streaming streaming() const override { return Streaming::kNeedsSequence; }

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    return RequireRank(in[0], 3, error) &&
           RequireChannels(in[0], channels_, error);
  }

  void Run(const LayerCall& call) const override {
    const Shape& shape = call.in[0].shape;
    const int64_t size = shape.dims[1] * channels_;
    // The means and the scales of the channels.
    auto* sums = static_cast<double*>(
        call.memory->arrays[0].Get(2 * channels_ * sizeof(double)));
    for (int64_t n = 0; n < shape.dims[0]; ++n) {
      RunRow(call.in[0].floats() + n * size, shape.dims[1], sums,
             call.out[0].floats() + n * size);
    }
  }

  bool works_in_place() const override { return true; }

 private:
  void RunRow(const float* x, int64_t time, double* means, float* y) const {
    double* scales = means + channels_;
    const int64_t group = channels_ / groups_;
    const auto count = static_cast<double>(time * group);
    SumsOfGroups(x, time, means, [](float z, double) { return z; });
    for (int64_t c = 0; c < channels_; ++c) means[c] /= count;
    std::copy_n(means, channels_, scales);
    SumsOfGroups(x, time, scales,
                 [](float z, double mean) { return (z - mean) * (z - mean); });
    for (int64_t c = 0; c < channels_; ++c) {
      scales[c] = 1 / std::sqrt(scales[c] / count + epsilon_);
    }
    for (int64_t t = 0; t < time; ++t, x += channels_, y += channels_) {
      Map(x, channels_, y, [&](float z, int64_t c) {
        const double normal = (z - means[c]) * scales[c];
        return static_cast<float>(normal * (gamma_ ? gamma_[c] : 1) +
                                  (beta_ ? beta_[c] : 0));
      });
    }
  }

  // Sets sums[c] to the sum of f(x, sums[c]) over the group of channel c.
  template <class F>
  void SumsOfGroups(const float* x, int64_t time, double* sums,
                    const F& f) const {
    const int64_t width = channels_ / groups_;
    for (int64_t first = 0; first < channels_; first += width) {
      double sum = 0;
      for (int64_t t = 0; t < time; ++t) {
        const float* row = x + t * channels_;
        for (int64_t c = first; c < first + width; ++c) {
          sum += f(row[c], sums[first]);
        }
      }
      std::fill_n(sums + first, width, sum);
    }
  }

  const float* const gamma_;
  const float* const beta_;
  const int64_t channels_, groups_;
  const double epsilon_;
};

enum NormalizationKind : int64_t { kLayer, kRms, kUnit, kGroups };

}  // namespace

std::unique_ptr<Layer> ReadNormalization(NodeReader* reader) {
  const int64_t kind = reader->Int(0, "kind of normalization", kLayer, kGroups);
  const int64_t channels = reader->InputSize(kind == kUnit ? 0 : 1);
  if (kind == kUnit) {
    const double floor = reader->Number(0, "the least length");
    if (floor < 0) reader->Fail("the least length is %g", floor);
    if (!reader->ok()) return nullptr;
    return std::make_unique<UnitNormalization>(channels, floor);
  }
  const bool is_rms = kind == kRms;
  const double epsilon = reader->Epsilon();
  const float* gamma = reader->Array(0, kInputGamma, false, {channels});
  const float* beta = reader->Array(0, kBias, false, {channels});
  if (kind == kGroups) {
    const int64_t groups = reader->Int(1, "the number of groups", 1, channels);
    if (channels % groups != 0) {
      reader->Fail("the channels are not a multiple of the groups");
    }
    if (!reader->ok()) return nullptr;
    return std::make_unique<GroupNormalization>(gamma, beta, channels, groups,
                                                epsilon);
  }
  if (!reader->ok()) return nullptr;
  return std::make_unique<Normalization>(gamma, beta, channels, epsilon,
                                         is_rms);
}

}  // namespace tf_lstm_ops::session
