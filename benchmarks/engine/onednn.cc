// Times the CPU engine and oneDNN on the same cases and threads. Prints three
// lines for each case: our times, oneDNN's times, and oneDNN's divided by ours.
//
// The two take turns in rounds. A time is the shortest one of all rounds. A
// ratio is the median of the rounds' ratios. All results are compared before.
//
// usage: onednn THREADS [CELL,BATCH,STEPS,INPUTS,UNITS ...]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "backends/cpu/engine.h"
#include "case.h"
#include "onednn_layer.h"
#include "our_layer.h"
#include "timing.h"

namespace engine_benchmark {
namespace {

constexpr int kRounds = 5;
constexpr double kSeconds = 0.1;  // of a pass in a round

// Ends the process if `theirs` differs from `ours` by more than 1e-4 of the
// largest element. Other orders of summation cause about 1e-6, and a wrong gate
// more than 1e-2.
void Compare(const Case& c, const char* what, const Values& ours,
             const Values& theirs) {
  constexpr float kTolerance = 1e-4F;
  float largest = 0, error = 0;
  for (const float value : ours) largest = std::max(largest, std::abs(value));
  bool equal = ours.size() == theirs.size();
  for (size_t k = 0; equal && k < ours.size(); ++k) {
    error = std::max(error, std::abs(ours[k] - theirs[k]));
    equal = std::abs(ours[k] - theirs[k]) <= kTolerance * largest;
  }
  if (equal) return;
  std::fprintf(stderr, "%s: %s of oneDNN differs by %g, the largest is %g\n",
               c.name().c_str(), what, error, largest);
  std::exit(1);
}

void Compare(const Case& c, const Results& ours, const Results& theirs) {
  Compare(c, "h of inference", ours.inferred_h, theirs.inferred_h);
  Compare(c, "h of training", ours.h, theirs.h);
  Compare(c, "the gradient of x", ours.x_grad, theirs.x_grad);
  Compare(c, "the gradient of the weights", ours.weights_grad,
          theirs.weights_grad);
}

struct Times {
  double ours = 1e9, theirs = 1e9, ratio = 0;
};

// Waits until idle threads of a pass have stopped spinning. They would delay
// the other implementation. The threads of GNU's OpenMP spin for some
// milliseconds, those of LLVM's for 200.
void Rest(int threads) {
  if (threads > 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

Times TakeTurns(int threads, const std::function<void()>& ours,
                const std::function<void()>& theirs) {
  Times times;
  Values ratios;
  ours();
  theirs();
  for (int round = 0; round < kRounds; ++round) {
    Rest(threads);
    const double mine = Fastest(ours, kSeconds);
    const double other = Fastest(theirs, kSeconds);
    times.ours = std::min(times.ours, mine);
    times.theirs = std::min(times.theirs, other);
    ratios.push_back(static_cast<float>(other / mine));
  }
  std::sort(ratios.begin(), ratios.end());
  times.ratio = ratios[kRounds / 2];
  return times;
}

void Run(const Case& c, const Rates& rates) {
  const Inputs inputs(c);
  OurLayer ours(c, inputs, rates.threads);
  OnednnLayer theirs(c, inputs);
  Compare(c, ours.Compute(), theirs.Compute());
  const auto turns = [&](void (OurLayer::*mine)(),
                         void (OnednnLayer::*other)()) {
    return TakeTurns(
        rates.threads, [&] { (ours.*mine)(); }, [&] { (theirs.*other)(); });
  };
  const Times times[] = {
      turns(&OurLayer::Infer, &OnednnLayer::Infer),
      turns(&OurLayer::InferWithKeptWeights, &OnednnLayer::Infer),
      turns(&OurLayer::Train, &OnednnLayer::Train),
      turns(&OurLayer::Backward, &OnednnLayer::Backward)};
  const Columns columns(c, rates);
  const auto print = [&](const char* name, const auto& print_pass) {
    std::printf("%-30s", name);
    for (const PassKind pass : {kInference, kKept, kForward, kBackward}) {
      print_pass(pass);
    }
    std::printf("\n");
  };
  print(c.name().c_str(),
        [&](PassKind pass) { columns.PrintTime(pass, times[pass].ours); });
  print("  oneDNN",
        [&](PassKind pass) { columns.PrintTime(pass, times[pass].theirs); });
  print("  oneDNN / ours", [&](PassKind pass) {
    std::printf(" | %s %9.2f%*s", kPassNames[pass], times[pass].ratio, 18, "");
  });
  std::fflush(stdout);
}

int Main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  const Rates rates(threads);
  std::printf("%s; ours: %s\n", DescribeOnednn().c_str(),
              tf_lstm_ops::SelectedInstructionSet().name);
  std::printf(
      "%d threads, peak %.0f GFLOP/s, sigmoid %.2f ns, tanh %.2f ns; %% of the "
      "floor, ns a unit"
      " and step\n",
      threads, rates.flops / 1e9, rates.sigmoid * 1e9, rates.tanh * 1e9);
  std::fflush(stdout);
  try {
    for (int k = 2; k < count; ++k) {
      Run(ParseCase(arguments[k]), rates);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oneDNN: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace engine_benchmark

int main(int count, char** arguments) {
  return engine_benchmark::Main(count, arguments);
}
