// Compares the predicted times of the schedules with measured times, and prints
// the predictions for more threads than this machine has, as Markdown tables.
//
// usage: predict THREADS [CELL,BATCH,STEPS,INPUTS,UNITS ...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/plan/backward_schedule.h"
#include "backends/cpu/plan/forward_schedule.h"
#include "backends/cpu/processor/measured_rates.h"
#include "case.h"
#include "our_layer.h"
#include "phases.h"
#include "timing.h"

namespace engine_benchmark {
namespace {

using tf_lstm_ops::RnnConfig;
using tf_lstm_ops::cpu::BackwardProblem;
using tf_lstm_ops::cpu::BackwardSchedule;
using tf_lstm_ops::cpu::ForwardProblem;
using tf_lstm_ops::cpu::ForwardSchedule;
using tf_lstm_ops::cpu::RatesFor;
using tf_lstm_ops::cpu::VectorTraits;
using tf_lstm_ops::cpu::WeightsState;

constexpr int kThreads[] = {1, 2, 4, 8, 16, 22, 32, 64, 128, 192};
constexpr const char* kRegimes[] = {"units", "slices"};

const char* RegimeOf(const ForwardSchedule& schedule) {
  return kRegimes[static_cast<int>(schedule.regime())];
}

// The schedules of a layer direction in float, as the engine makes them.
class Prediction {
 public:
  explicit Prediction(const Case& c) : case_(c), packed_(SequenceOf(c)) {}

  ForwardSchedule Forward(int threads, bool packs_weights) const {
    auto problem = ProblemOf<ForwardProblem>();
    problem.weights =
        packs_weights ? WeightsState::kOfCall : WeightsState::kFilled;
    problem.rates = RatesFor(problem.packed_bytes());
    return {problem, threads};
  }

  BackwardSchedule Backward(int threads) const {
    auto problem = ProblemOf<BackwardProblem>();
    problem.rates = RatesFor(problem.weight_bytes());
    return {problem, threads};
  }

 private:
  template <class Problem>
  Problem ProblemOf() const {
    RnnConfig config;
    config.cell = case_.cell;
    config.input_size = case_.inputs;
    config.cell_size = config.hidden_size = case_.units;
    VectorTraits traits;
    traits.lanes =
        tf_lstm_ops::SelectedInstructionSet().engine->forward.traits.lanes;
    Problem problem(config, traits);
    problem.batch = packed_.batch;
    problem.steps = packed_.steps;
    problem.rows = packed_.size();
    return problem;
  }

  const Case case_;
  const tf_lstm_ops::PackedSequence packed_;
};

// A case whose passes are timed: the seconds of the fastest call of each.
class TimedCase {
 public:
  TimedCase(const Case& c, int threads)
      : case_(c), inputs_(c), layer_(c, inputs_, threads) {
    layer_.Train();
  }

  void Round() {
    Time(&inference_, [&] { layer_.Infer(); });
    Time(&kept_, [&] { layer_.InferWithKeptWeights(); });
    Time(&backward_, [&] { layer_.Backward(); });
  }

  // Prints a row with the times, the predictions and their ratios.
  void Print(int threads) const {
    const Prediction prediction(case_);
    const ForwardSchedule forward = prediction.Forward(threads, true);
    const ForwardSchedule kept = prediction.Forward(threads, false);
    std::printf("| %s | %s", case_.name().c_str(), RegimeOf(forward));
    PrintCells(inference_, forward.time());
    PrintCells(kept_, kept.time());
    PrintCells(backward_, prediction.Backward(threads).time());
    std::printf(" |\n");
  }

 private:
  static void Time(double* best, const std::function<void()>& call) {
    constexpr double kSeconds = 0.06;
    *best = std::min(*best, Fastest(call, kSeconds));
  }
  static void PrintCells(double seconds, double nanoseconds) {
    std::printf(" | %.1f | %.1f | %.2f", seconds * 1e6, nanoseconds / 1e3,
                nanoseconds / seconds / 1e9);
  }

  const Case case_;
  const Inputs inputs_;
  OurLayer layer_;
  double inference_ = 1e9, kept_ = 1e9, backward_ = 1e9;
};

void PrintHead(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) std::printf("| %s ", cell.c_str());
  std::printf("|\n|");
  for (size_t k = 0; k < cells.size(); ++k) std::printf("---|");
  std::printf("\n");
}

void PrintRates(int threads) {
  const tf_lstm_ops::cpu::Rates& rates = tf_lstm_ops::cpu::MeasuredRates();
  const tf_lstm_ops::cpu::Rates defaults;
  const auto print = [](const char* what, double measured, double rate) {
    std::printf("| %s | %.4g | %.4g |\n", what, measured, rate);
  };
  std::printf("Nanoseconds.\n\n");
  PrintHead({"rate", "measured", "default"});
  print("multiply_add", rates.multiply_add, defaults.multiply_add);
  print("near_byte", rates.near_byte, defaults.near_byte);
  print("far_byte", rates.far_byte, defaults.far_byte);
  print("item", ItemTime(threads), defaults.item);
  if (threads > 1) {
    print("thread", ThreadTime(threads), defaults.thread);
    print("wake", WakeTime(threads), defaults.wake);
  }
}

// The cases take turns, so that a disturbance of the machine for some seconds
// does not meet all calls of a case.
void PrintComparisons(const std::vector<Case>& cases, int threads) {
  constexpr int kRounds = 8;
  std::deque<TimedCase> timed;  // they do not move
  for (const Case& c : cases) timed.emplace_back(c, threads);
  for (int round = 0; round < kRounds; ++round) {
    for (TimedCase& c : timed) c.Round();
  }
  std::printf("\nMicroseconds with %d threads; predicted / measured.\n\n",
              threads);
  std::vector<std::string> head = {"case", "regime"};
  for (const char* pass : {"inference", "kept weights", "backward"}) {
    head.insert(head.end(), {pass, "predicted", "ratio"});
  }
  PrintHead(head);
  for (const TimedCase& c : timed) c.Print(threads);
}

// A row for each case and a column for each number of threads. `print` prints a
// cell.
template <class F>
void PrintCurves(const char* pass, const std::vector<Case>& cases,
                 const F& print) {
  std::printf("\nPredicted %s, microseconds, by the threads requested.\n\n",
              pass);
  std::vector<std::string> head = {"case"};
  for (const int threads : kThreads) head.push_back(std::to_string(threads));
  PrintHead(head);
  for (const Case& c : cases) {
    const Prediction prediction(c);
    std::printf("| %s |", c.name().c_str());
    for (const int threads : kThreads) print(prediction, threads);
    std::printf("\n");
  }
}

void PrintForward(const Prediction& prediction, int threads) {
  const ForwardSchedule schedule = prediction.Forward(threads, true);
  std::printf(" %s %d: %.1f |", RegimeOf(schedule), schedule.threads(),
              schedule.time() / 1e3);
}

void PrintBackward(const Prediction& prediction, int threads) {
  const BackwardSchedule schedule = prediction.Backward(threads);
  std::printf(" %s %d: %.1f |", schedule.slices() > 0 ? "slices" : "units",
              schedule.threads(), schedule.time() / 1e3);
}

int Main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  std::vector<Case> cases;
  for (int k = 2; k < count; ++k) cases.push_back(ParseCase(arguments[k]));
  PrintRates(threads);
  PrintComparisons(cases, threads);
  PrintCurves("inference", cases, PrintForward);
  PrintCurves("backward pass", cases, PrintBackward);
  return 0;
}

}  // namespace
}  // namespace engine_benchmark

int main(int count, char** arguments) {
  return engine_benchmark::Main(count, arguments);
}
