// Times of passes, and the columns in which they are printed.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "backends/cpu/engine.h"
#include "case.h"
#include "roofline.h"

namespace engine_benchmark {

// Repeats `call` for about `duration` seconds, at least three times. Returns
// the seconds of the fastest call.
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

inline const tf_lstm_ops::Engine& Engine() {
  return *tf_lstm_ops::SelectedInstructionSet().engine;
}

// The peak rate of float operations on `threads` threads, and the times of
// sigmoid and tanh.
struct Rates {
  double flops;          // float operations a second
  double sigmoid, tanh;  // seconds of a value, in the cache
  int threads;

  explicit Rates(int n)
      : flops(roofline::MeasureFlops(Engine().multiply_add, n)),
        sigmoid(Seconds(tf_lstm_ops::Activation::kSigmoid, n)),
        tanh(Seconds(tf_lstm_ops::Activation::kTanh, n)),
        threads(n) {}

 private:
  static double Seconds(tf_lstm_ops::Activation function, int threads) {
    constexpr int kSize = 2048;
    const Values x = Random(kSize, 4);
    Values y(kSize);
    const auto call = [&] {
      Engine().activate(function, x.data(), y.data(), kSize);
    };
    return Fastest(call, 0.05) / kSize / threads;
  }
};

// The columns. kKept is inference with weights that were packed before.
enum PassKind { kInference, kKept, kForward, kBackward };
constexpr const char* kPassNames[] = {"inference", "kept weights", "forward",
                                      "backward"};

// Prints the parts of a line for a case.
class Columns {
 public:
  Columns(const Case& c, const Rates& rates)
      : case_(c),
        rates_(rates),
        bandwidth_(roofline::MeasureReadBandwidth(
            Engine().sum, 4 * c.gates() * c.units * c.units, rates.threads)) {}

  void PrintTime(PassKind pass, double seconds) const {
    const auto work =
        static_cast<double>(case_.batch * case_.steps * case_.units);
    std::printf(" | %s %9.1f us %3.0f %% %6.2f ns", kPassNames[pass],
                seconds * 1e6, 100 * Floor(pass == kBackward) / seconds,
                seconds / work * 1e9);
  }

 private:
  // The floor: the time of the products by the roofline model, plus the time of
  // the cell's sigmoids and tanhs. They are added because both use the
  // processor's multiply-add units.
  double Floor(bool backward) const {
    const auto values =
        static_cast<double>(case_.batch * case_.steps * case_.units);
    return Products(backward) + values * Functions(backward);
  }

  // Seconds of the sigmoids and tanhs of a unit and step. The backward pass of
  // an LSTM computes the tanh of the cell state again.
  double Functions(bool backward) const {
    if (backward) return case_.is_lstm() ? rates_.tanh : 0;
    return case_.is_lstm() ? 3 * rates_.sigmoid + 2 * rates_.tanh
                           : 2 * rates_.sigmoid + rates_.tanh;
  }

  // All products at the peak rate, but in each step at least the time to read
  // the recurrent weights.
  double Products(bool backward) const {
    const auto columns = static_cast<double>(case_.gates() * case_.units);
    const auto batch = static_cast<double>(case_.batch);
    const auto steps = static_cast<double>(case_.steps);
    const auto inputs = static_cast<double>(case_.inputs);
    const auto units = static_cast<double>(case_.units);
    const double of_input = 2 * batch * steps * inputs * columns / rates_.flops;
    const double recurrent = 2 * batch * units * columns / rates_.flops;
    const double step = std::max(recurrent, units * columns * 4 / bandwidth_);
    return backward ? 2 * of_input + steps * (step + recurrent)
                    : of_input + steps * step;
  }

  const Case case_;
  const Rates& rates_;
  const double bandwidth_;
};

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_TIMING_H_
