#include "session/layers/pool_steps.h"

#include <algorithm>
#include <cmath>

#include "session/layers/elementwise.h"

namespace tf_lstm_ops::session {

void MaxOfSteps(const float* x, int64_t steps, int64_t channels, float* y) {
  if (steps == 0) std::fill_n(y, channels, -INFINITY);
  if (steps > 0) std::copy_n(x, channels, y);
  for (int64_t s = 1; s < steps; ++s) {
    const float* step = x + s * channels;
    Map(y, channels, y,
        [step](float z, int64_t c) { return Larger(z, step[c]); });
  }
}

namespace {

// y = the sums of the valid steps, divided by `divisor`.
void DividedSums(const float* x, int64_t steps, int64_t channels,
                 const bool* valid, double divisor, float* y) {
  constexpr int64_t kBlock = 64;  // channels, whose sums stay in the L1 cache
  for (int64_t first = 0; first < channels; first += kBlock) {
    const int64_t width = std::min(channels - first, kBlock);
    double sums[kBlock] = {};
    for (int64_t s = 0; s < steps; ++s) {
      if (valid && !valid[s]) continue;
      const float* step = x + s * channels + first;
      for (int64_t c = 0; c < width; ++c) sums[c] += step[c];
    }
    for (int64_t c = 0; c < width; ++c) {
      y[first + c] = static_cast<float>(sums[c] / divisor);
    }
  }
}

}  // namespace

void MeanOfSteps(const float* x, int64_t steps, int64_t channels,
                 const bool* valid, float* y) {
  const int64_t count = valid ? std::count(valid, valid + steps, true) : steps;
  DividedSums(x, steps, channels, valid, static_cast<double>(count), y);
}

void SumOfSteps(const float* x, int64_t steps, int64_t channels, float* y) {
  DividedSums(x, steps, channels, nullptr, 1, y);
}

}  // namespace tf_lstm_ops::session
