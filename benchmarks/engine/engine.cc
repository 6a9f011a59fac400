// Times the CPU engine without TensorFlow. Prints a line for each case: time of
// one call, rate, fraction of the floor, time for each unit and step.
//
// usage: engine THREADS [CELL,BATCH,STEPS,INPUTS,UNITS ...]
#include <cstdio>
#include <cstdlib>

#include "case.h"
#include "our_layer.h"
#include "timing.h"

namespace engine_benchmark {
namespace {

void Run(const Case& c, const Rates& rates) {
  constexpr double kSeconds = 0.4;
  const Inputs inputs(c);
  OurLayer layer(c, inputs, rates.threads);
  const Columns columns(c, rates);
  std::printf("%-30s", c.name().c_str());
  const auto time = [&](PassKind pass, const std::function<void()>& call) {
    columns.PrintTime(pass, Fastest(call, kSeconds));
  };
  time(kInference, [&] { layer.Infer(); });
  time(kKept, [&] { layer.InferWithKeptWeights(); });
  time(kForward, [&] { layer.Train(); });
  time(kBackward, [&] { layer.Backward(); });
  std::printf("\n");
  std::fflush(stdout);
}

int Main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  const Rates rates(threads);
  std::printf(
      "%d threads, peak %.0f GFLOP/s, sigmoid %.2f ns, tanh %.2f ns; %% of the "
      "floor, ns a unit"
      " and step\n",
      threads, rates.flops / 1e9, rates.sigmoid * 1e9, rates.tanh * 1e9);
  for (int k = 2; k < count; ++k) Run(ParseCase(arguments[k]), rates);
  return 0;
}

}  // namespace
}  // namespace engine_benchmark

int main(int count, char** arguments) {
  return engine_benchmark::Main(count, arguments);
}
