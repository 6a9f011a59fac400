// ForwardEngine: the forward passes of one instruction set and one type.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_

#include <cassert>
#include <cstdint>

#include "backends/cpu/memory/call_memory.h"
#include "backends/cpu/plan/forward_plan.h"
#include "backends/cpu/plan/side_by_side.h"
#include "backends/cpu/processor/measured_rates.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops {

// The arguments of the engine for a forward pass. States are contiguous, [B, P]
// and [B, H]. Multipliers are contiguous, [G, B, .]. The engine reads `valid`
// instead of `sequence`. It writes neither final_h nor masked steps.
template <class T>
struct EngineForward : LayerForward<T> {
  const PackedSequence* valid = nullptr;
};

// A pass, its plan, and its packed weights.
template <class T>
struct PlannedForward {
  const EngineForward<T>* layer = nullptr;
  cpu::ForwardPlan plan;
  // Memory of the packed weights that the caller keeps, and whether it holds
  // them. Null: the pass packs them into memory of its own.
  T* packed = nullptr;
  bool is_packed = false;
};

// Computes passes side by side, 1 or kMaxTogether of them, whose plans have the
// same way.
template <class T>
using ForwardFunction = void (*)(const PlannedForward<T>* passes, int count,
                                 cpu::CallMemory* memory);

template <class T>
struct ForwardEngine {
  cpu::VectorTraits traits;
  ForwardFunction<T> run[cpu::kForwardWays];  // by ForwardWay
  // Packs all weights, unless `packed` is null. Returns the number of elements
  // of the packed weights.
  int64_t (*pack)(const LayerDirection<T>& layer, cpu::WeightFormat format,
                  T* packed);
  // Elements of memory that suffice for any pass of the layer on at most
  // `threads` threads, and of no more rows and steps.
  int64_t (*most_memory)(const PlannedForward<T>& pass,
                         const cpu::ForwardProblem& problem, int threads);
};

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
    const auto run = engine.run[static_cast<int>(passes[k].plan.way)];
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

struct RowSteps;

// A layer direction for passes of one row. Arrays that have an element for each
// unit have H' elements, H rounded up to whole vectors, of which those behind
// the units are zero.
struct RowLayer {
  void (*run)(const RowLayer& layer, const RowSteps& row) = nullptr;
  RnnConfig config;   // its cell_size is H'
  int64_t units = 0;  // H
  int vectors = 1;    // of units that a step computes together, at most
  cpu::WeightFormat format = cpu::WeightFormat::kElements;
  RnnWeights<const float> weights;          // the peepholes only
  const float* packed_input = nullptr;      // see PackedLayer
  const float* packed_recurrent = nullptr;  // see PackedLayer
  const float* bias = nullptr;  // sums of the biases, [pre-activations, H']
};

// Steps of one row, forwards in time.
struct RowSteps {
  int64_t steps = 1;
  const float* x = nullptr;  // [steps, I], x_stride apart
  int64_t x_stride = 0;
  float* y = nullptr;  // h of each step, [steps, H], y_stride apart
  int64_t y_stride = 0;
  // The states [H'], which are updated; c is that of an LSTM. They and
  // `scratch` are aligned to 64 bytes.
  float* h = nullptr;
  float* c = nullptr;
  float* scratch = nullptr;  // RowScratch() elements
  // Whether the first step computes the last units first. Steps alternate: what
  // was used last is still in the cache.
  bool reverse = false;
};
using RowFunction = decltype(RowLayer::run);

// Steps whose x W is computed together, in bands of kRows rows.
constexpr int64_t kRowChunk = 2 * kRows;

// Elements of RowSteps::scratch: the next h, z of a chunk, h and x of a chunk
// as the products read them.
inline int64_t RowScratch(const RowLayer& layer) {
  const int64_t rounded =
      cpu::MostFactorFloats(layer.config.hidden_size) +
      kRowChunk * cpu::MostFactorFloats(layer.config.input_size);
  return layer.config.cell_size * (1 + kRowChunk * kMaxPreActivations) +
         (layer.format == cpu::WeightFormat::kElements ? 0 : rounded);
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_
