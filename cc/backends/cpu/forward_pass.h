// From the arguments of forward passes to their plans, and to the functions of
// the engine that compute them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FORWARD_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FORWARD_PASS_H_

#include <cassert>
#include <cstdint>

#include "backends/cpu/forward_engine.h"
#include "backends/cpu/plan/side_by_side.h"
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops {

// What the plan of a pass depends on. The weights are those of the call.
template <class T>
cpu::ForwardProblem ProblemOf(const EngineForward<T>& layer,
                              const ForwardEngine<T>& engine) {
  const auto units_in_rows = [](const GateMatrices<const T>& w) {
    return w && w.column_stride == 1;
  };
  cpu::ForwardProblem problem(layer.config, engine.traits);
  problem.batch = layer.valid->batch;
  problem.steps = layer.valid->steps;
  problem.rows = layer.valid->size();
  problem.all_valid = layer.valid->is_full();
  problem.has_input = static_cast<bool>(layer.weights.input);
  problem.units_in_rows = units_in_rows(layer.weights.input) &&
                          units_in_rows(layer.weights.recurrent);
  problem.drops = layer.input_dropout.data || layer.recurrent_dropout.data;
  for (int k = 0; k < kMaxSavedActivations; ++k) {
    problem.saves = problem.saves || layer.saved.Has(k);
  }
  SetFormat(FormatOf(problem), &problem);
  return problem;
}

// Runs planned passes, side by side or one after the other.
template <class T>
void RunForward(const ForwardEngine<T>& engine, const PlannedForward<T>* passes,
                int count, cpu::CallMemory* memory) {
  const int together = passes->plan.side_by_side ? count : 1;
  for (int k = 0; k < count; k += together) {
    const auto run = engine.way(passes[k].plan.way).run;
    assert(run);
    run(passes + k, together, memory);
  }
}

// Plans passes on at most `threads` threads, and runs them.
template <class T>
void PlanAndRun(const ForwardEngine<T>& engine,
                const cpu::ForwardProblem* problems, PlannedForward<T>* passes,
                int count, int threads, cpu::CallMemory* memory) {
  cpu::ForwardPlan plans[cpu::kMaxTogether];
  cpu::PlanForward(problems, count, threads, plans);
  for (int k = 0; k < count; ++k) passes[k].plan = plans[k];
  RunForward(engine, passes, count, memory);
}

// Elements of memory that suffice for any pass of the layer of a frozen `pass`
// on at most `threads` threads, and of no more rows and steps.
template <class T>
int64_t MostMemory(const ForwardEngine<T>& engine,
                   const PlannedForward<T>& pass,
                   const cpu::ForwardProblem& problem, int threads) {
  int64_t most = 0;
  for (int k = 0; k < cpu::kForwardWays; ++k) {
    const auto memory = engine.ways[k].most_memory;
    if (!memory || !cpu::kWays[k]->fits(problem)) continue;
    most = Max(most, memory(pass, problem, threads));
  }
  return most;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FORWARD_PASS_H_
