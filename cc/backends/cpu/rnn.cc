#include "backends/cpu/rnn.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "backends/cpu/engine.h"

namespace tf_lstm_ops::cpu {
namespace {

// A team pays where its members save more than they wait: about a million
// multiply-adds a call (20 microseconds), 15,000 a step. `work` is that of one
// entry of the schedule.
int UsefulThreads(const Schedule& schedule, double work, int threads) {
  const double total = work * static_cast<double>(schedule.size());
  const auto steps = static_cast<double>(std::max<int64_t>(schedule.steps, 1));
  return total < 1e6 || total / steps < 1.5e4 ? 1 : threads;
}

double WeightsOf(const RnnConfig& config) {
  return static_cast<double>(GateCount(config.cell)) *
         static_cast<double>(config.cell_size) *
         static_cast<double>(config.hidden_size + config.input_size);
}

template <class T>
double WorkOf(const RnnBackward<T>& args) {
  const bool multiplies = args.schedule->steps > 1 || args.wants_initial_dh ||
                          args.dx || args.gradients.input ||
                          args.gradients.recurrent;
  constexpr double kOfUnit = 60;  // the cell's equations and their memory
  return multiplies ? WeightsOf(args.config)
                    : kOfUnit * static_cast<double>(args.config.cell_size);
}

ForwardFunction<float> ForwardOf(const RnnForward<float>& args) {
  const InstructionSet& set = SelectedInstructionSet();
  return args.config.bfloat16 ? set.bfloat16->forward
                              : set.engine->forward_float;
}
ForwardFunction<double> ForwardOf(const RnnForward<double>&) {
  return SelectedInstructionSet().engine->forward_double;
}
BackwardFunction<float> BackwardOf(const RnnBackward<float>& args) {
  const InstructionSet& set = SelectedInstructionSet();
  return args.config.bfloat16 ? set.bfloat16->backward
                              : set.engine->backward_float;
}
BackwardFunction<double> BackwardOf(const RnnBackward<double>&) {
  return SelectedInstructionSet().engine->backward_double;
}

// Side by side, a step has the work of both layers for one wait, and threads
// alternate between the recurrent weights of both, which pays while these stay
// in their caches: half of an L2 cache. `threads` of a step with both.
template <class T>
bool SideBySide(const RnnConfig& config, size_t layers, int threads) {
  constexpr double kBytes = 512 << 10;
  const auto cell = static_cast<double>(config.cell_size);
  const double weights = GateCount(config.cell) * cell *
                         static_cast<double>(config.hidden_size) * sizeof(T);
  return layers == kMaxTogether && threads > 1 &&
         kMaxTogether * weights <= kBytes * threads;
}

}  // namespace

template <class T>
void Forward(const RnnForward<T>& args, int threads, PackedWeights* packed) {
  threads = UsefulThreads(*args.schedule, WeightsOf(args.config), threads);
  if (packed && !packed->filled() && !packed->Claim()) packed = nullptr;
  ForwardOf(args)(&args, 1, threads, packed);
  if (packed) packed->Filled();
}

template <class T>
void Backward(const RnnBackward<T>& args, int threads) {
  BackwardOf(args)(&args, 1,
                   UsefulThreads(*args.schedule, WorkOf(args), threads));
}

template <class T>
void ForwardAll(const std::vector<RnnForward<T>>& layers, int threads) {
  const RnnForward<T>& first = layers[0];
  const double work = kMaxTogether * WeightsOf(first.config);
  const int both = UsefulThreads(*first.schedule, work, threads);
  if (SideBySide<T>(first.config, layers.size(), both)) {
    return ForwardOf(first)(layers.data(), kMaxTogether, both, nullptr);
  }
  for (const RnnForward<T>& layer : layers) Forward(layer, threads);
}

template <class T>
void BackwardAll(const std::vector<RnnBackward<T>>& layers, int threads) {
  const RnnBackward<T>& first = layers[0];
  const double work = kMaxTogether * WorkOf(first);
  const int both = UsefulThreads(*first.schedule, work, threads);
  if (SideBySide<T>(first.config, layers.size(), both)) {
    return BackwardOf(first)(layers.data(), kMaxTogether, both);
  }
  for (const RnnBackward<T>& layer : layers) Backward(layer, threads);
}

template void Forward(const RnnForward<float>&, int, PackedWeights*);
template void Forward(const RnnForward<double>&, int, PackedWeights*);
template void Backward(const RnnBackward<float>&, int);
template void Backward(const RnnBackward<double>&, int);
template void ForwardAll(const std::vector<RnnForward<float>>&, int);
template void ForwardAll(const std::vector<RnnForward<double>>&, int);
template void BackwardAll(const std::vector<RnnBackward<float>>&, int);
template void BackwardAll(const std::vector<RnnBackward<double>>&, int);

int ThreadCount(int configured) {
  if (configured > 0) return configured;
  if (const char* text = std::getenv("TF_NUM_INTRAOP_THREADS")) {
    const long number = std::strtol(text, nullptr, 10);
    if (number > 0) return static_cast<int>(std::min(number, 1L << 16));
  }
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return std::max(1, CPU_COUNT(&allowed));
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace tf_lstm_ops::cpu
