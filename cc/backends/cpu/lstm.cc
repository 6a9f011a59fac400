#include "backends/cpu/lstm.h"

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
int UsefulThreads(const LstmConfig& config, const Schedule& schedule,
                  int threads) {
  const double per_entry =
      8.0 * config.cell_size * (config.cell_size + config.input_size);
  const double total = per_entry * schedule.size();
  const double step = schedule.steps > 0 ? total / schedule.steps : 0;
  return total < 2e6 || step < 3e4 ? 1 : threads;
}

}  // namespace

template <>
void Forward(const LstmForward<float>& args, int threads) {
  SelectedInstructionSet().engine->forward_float(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Forward(const LstmForward<double>& args, int threads) {
  SelectedInstructionSet().engine->forward_double(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Backward(const LstmBackward<float>& args, int threads) {
  SelectedInstructionSet().engine->backward_float(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

template <>
void Backward(const LstmBackward<double>& args, int threads) {
  SelectedInstructionSet().engine->backward_double(
      args, UsefulThreads(args.config, *args.schedule, threads));
}

int ThreadCount(int configured) {
  if (configured > 0) return configured;
  if (const char* text = std::getenv("TF_NUM_INTRAOP_THREADS")) {
    const int number = std::atoi(text);
    if (number > 0) return number;
  }
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return std::max(1, CPU_COUNT(&allowed));
  }
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace tf_lstm_ops::cpu
