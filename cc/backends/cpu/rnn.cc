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

template <class T, class Run>
void RunForward(const RnnForward<T>& args, int threads, PackedWeights* packed,
                const Run& run) {
  threads = UsefulThreads(*args.schedule, WeightsOf(args.config), threads);
  if (packed && !packed->filled() && !packed->Claim()) packed = nullptr;
  run(args, threads, packed);
  if (packed) packed->Filled();
}

}  // namespace

template <>
void Forward(const RnnForward<float>& args, int threads,
             PackedWeights* packed) {
  RunForward(args, threads, packed,
             SelectedInstructionSet().engine->forward_float);
}

template <>
void Forward(const RnnForward<double>& args, int threads,
             PackedWeights* packed) {
  RunForward(args, threads, packed,
             SelectedInstructionSet().engine->forward_double);
}

template <>
void Backward(const RnnBackward<float>& args, int threads) {
  SelectedInstructionSet().engine->backward_float(
      args, UsefulThreads(*args.schedule, WorkOf(args), threads));
}

template <>
void Backward(const RnnBackward<double>& args, int threads) {
  SelectedInstructionSet().engine->backward_double(
      args, UsefulThreads(*args.schedule, WorkOf(args), threads));
}

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
