// Times of passes, and the columns in which they are printed.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "backends/cpu/roofline.h"
#include "case.h"

namespace engine_benchmark {

// Seconds of the fastest of the calls that fit into `duration` seconds, at
// least three.
inline double Fastest(const std::function<void()>& call, double duration) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9, total = 0;
  for (int rounds = 0; rounds < 3 || total < duration; ++rounds) {
    const auto begin = Clock::now();
    call();
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::min(best, seconds.count());
    total += seconds.count();
  }
  return best;
}

// The columns. kKept is inference with weights that were packed before.
enum PassKind { kInference, kKept, kForward, kBackward };
constexpr const char* kPassNames[] = {"inference", "kept weights", "forward",
                                      "backward"};

// Prints the parts of a line for a case.
class Columns {
 public:
  // `flops` is the peak rate of `threads` threads.
  Columns(const Case& c, int threads, double flops)
      : case_(c),
        flops_(flops),
        bandwidth_(tf_lstm_ops::cpu::MeasureReadBandwidth(
            4 * c.gates() * c.units * c.units, threads)) {}

  void PrintTime(PassKind pass, double seconds) const {
    const auto work =
        static_cast<double>(case_.batch * case_.steps * case_.units);
    std::printf(" | %s %9.1f us %3.0f %% %6.2f ns", kPassNames[pass],
                seconds * 1e6, 100 * Floor(pass == kBackward) / seconds,
                seconds / work * 1e9);
  }

 private:
  // The shortest time of a pass by the roofline model: its products at the
  // peak rate, and in each step at least the time to read the recurrent
  // weights.
  double Floor(bool backward) const {
    const auto columns = static_cast<double>(case_.gates() * case_.units);
    const auto batch = static_cast<double>(case_.batch);
    const auto steps = static_cast<double>(case_.steps);
    const auto inputs = static_cast<double>(case_.inputs);
    const auto units = static_cast<double>(case_.units);
    const double of_input = 2 * batch * steps * inputs * columns / flops_;
    const double recurrent = 2 * batch * units * columns / flops_;
    const double step = std::max(recurrent, units * columns * 4 / bandwidth_);
    return backward ? 2 * of_input + steps * (step + recurrent)
                    : of_input + steps * step;
  }

  const Case case_;
  const double flops_, bandwidth_;
};

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_
