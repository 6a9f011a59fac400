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

// A team pays where its members save more than they wait: about 2 million
// floating-point operations a call (20 microseconds), 30,000 a step.
int UsefulThreads(const RnnConfig& config, const Schedule& schedule,
                  int threads) {
  const double weights =
      static_cast<double>(GateCount(config.cell)) *
      static_cast<double>(config.cell_size) *
      static_cast<double>(config.hidden_size + config.input_size);
  const auto steps = static_cast<double>(std::max<int64_t>(schedule.steps, 1));
  const double total = 2 * weights * static_cast<double>(schedule.size());
  const double step = total / steps;
  return total < 2e6 || step < 3e4 ? 1 : threads;
}

}  // namespace

template <>
void Forward(const RnnForward<float>& args, int threads) {
  SelectedInstructionSet().engine->forward_float(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Forward(const RnnForward<double>& args, int threads) {
  SelectedInstructionSet().engine->forward_double(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Backward(const RnnBackward<float>& args, int threads) {
  SelectedInstructionSet().engine->backward_float(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Backward(const RnnBackward<double>& args, int threads) {
  SelectedInstructionSet().engine->backward_double(
      args, UsefulThreads(args.config, *args.schedule, threads));
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
