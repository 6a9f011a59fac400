// Compares the predicted times of the schedules with measured times, and prints
// the predictions for more threads than this machine has.
//
// usage: predict THREADS [CELL,BATCH,STEPS,INPUTS,UNITS ...]
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/backward_schedule.h"
#include "backends/cpu/forward_schedule.h"
#include "backends/cpu/measured_rates.h"
#include "case.h"
#include "our_layer.h"
#include "timing.h"

namespace engine_benchmark {
namespace {

using tf_lstm_ops::cpu::BackwardSchedule;
using tf_lstm_ops::cpu::ForwardSchedule;
using tf_lstm_ops::cpu::RatesFor;

class Prediction {
 public:
  explicit Prediction(const Case& c)
      : case_(c),
        lanes_(tf_lstm_ops::SelectedInstructionSet().engine->float_lanes),
        packed_(SequenceOf(c)) {}

  ForwardSchedule Forward(int threads, bool packs_weights) const {
    const auto gates = case_.gates();
    ForwardSchedule::Problem problem = {
        packed_,   false,    packs_weights, false,
        false,     Padded(), case_.units,   case_.inputs,
        lanes_,    gates,    gates,         gates * Padded() * 4,
        lanes_ * 4};
    problem.rates =
        RatesFor((case_.inputs + case_.units) * gates * Padded() * 4);
    return {problem, threads};
  }
  BackwardSchedule Backward(int threads) const {
    const int64_t row = case_.gates() * case_.units * 4;
    BackwardSchedule::Problem problem = {case_.batch,
                                         case_.steps,
                                         packed_.size(),
                                         false,
                                         true,
                                         Padded(),
                                         case_.units,
                                         case_.inputs,
                                         lanes_,
                                         case_.gates(),
                                         (case_.units + case_.inputs) * row,
                                         row,
                                         lanes_ * 4};
    problem.rates = RatesFor((case_.units + case_.inputs) * row);
    return {problem, threads};
  }

 private:
  int64_t Padded() const {
    return (case_.units + lanes_ - 1) / lanes_ * lanes_;
  }

  const Case case_;
  const int64_t lanes_;
  const tf_lstm_ops::PackedSequence packed_;
};

constexpr const char* kRegimes[] = {"once", "units", "slices"};

void Compare(const Case& c, int threads) {
  const Inputs inputs(c);
  OurLayer layer(c, inputs, threads);
  const Prediction prediction(c);
  constexpr double kSeconds = 0.3;
  layer.Train();
  const double measured[] = {
      Fastest([&] { layer.Infer(); }, kSeconds),
      Fastest([&] { layer.InferWithKeptWeights(); }, kSeconds),
      Fastest([&] { layer.Backward(); }, kSeconds)};
  const ForwardSchedule forward = prediction.Forward(threads, true);
  const ForwardSchedule kept = prediction.Forward(threads, false);
  const BackwardSchedule backward = prediction.Backward(threads);
  const double predicted[] = {forward.time(), kept.time(), backward.time()};
  std::printf("%-28s %6s %d %d |", c.name().c_str(),
              kRegimes[static_cast<int>(forward.regime())], forward.threads(),
              backward.threads());
  for (int k = 0; k < 3; ++k) {
    std::printf(" %9.1f %9.1f %5.2f |", measured[k] * 1e6, predicted[k] / 1e3,
                predicted[k] / measured[k] / 1e9);
  }
  std::printf("\n");
}

void PrintCurve(const Case& c) {
  const Prediction prediction(c);
  std::printf("%-28s", c.name().c_str());
  for (const int threads : {1, 2, 4, 8, 16, 22, 32, 64, 128, 192}) {
    const ForwardSchedule forward = prediction.Forward(threads, true);
    const BackwardSchedule backward = prediction.Backward(threads);
    std::printf(" | %3d: %s %d %.1f; %d %.1f", threads,
                kRegimes[static_cast<int>(forward.regime())], forward.threads(),
                forward.time() / 1e3, backward.threads(),
                backward.time() / 1e3);
  }
  std::printf("\n");
}

int Main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  const tf_lstm_ops::cpu::Rates& rates = tf_lstm_ops::cpu::MeasuredRates();
  std::printf(
      "ns of a vector multiply-add %.3f, of a byte of the L2 cache %.4f, of "
      "the shared cache %.4f more\n",
      rates.multiply_add, rates.near_byte, rates.far_byte);
  for (int k = 2; k < count; ++k) Compare(ParseCase(arguments[k]), threads);
  for (int k = 2; k < count; ++k) PrintCurve(ParseCase(arguments[k]));
  return 0;
}

}  // namespace
}  // namespace engine_benchmark

int main(int count, char** arguments) {
  return engine_benchmark::Main(count, arguments);
}
