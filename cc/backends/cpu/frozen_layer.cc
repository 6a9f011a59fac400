#include "backends/cpu/frozen_layer.h"

#include <optional>

#include "backends/cpu/engine_arguments.h"
#include "backends/cpu/forward_pass.h"
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops::cpu {
namespace {

float* Floats(const AlignedBuffer& buffer) {
  return static_cast<float*>(buffer.data());
}

std::unique_ptr<AlignedBuffer> AllocateFloats(int64_t count) {
  return std::make_unique<AlignedBuffer>(count * sizeof(float));
}

int64_t WeightsOf(const RnnConfig& config) {
  return GateCount(config.cell) * config.cell_size *
         (config.input_size + config.hidden_size);
}

// Memory for all passes of no more rows and steps than `pass`.
void Reserve(const ForwardEngine<float>& engine,
             const PlannedForward<float>& pass, const ForwardProblem& problem,
             int count, int threads, CallMemory* memory) {
  const int64_t floats = MostMemory(engine, pass, problem, threads);
  memory->Get(count * floats * sizeof(float));
}

}  // namespace

FrozenLayer::FrozenLayer(const RnnConfig& config,
                         const RnnWeights<const float>& weights)
    : config_(config),
      weights_(weights),
      engine_(FrozenEngine(weights.recurrent, WeightsOf(config),
                           &EngineFor(config))),
      format_(FrozenFormat(weights.recurrent, WeightsOf(config),
                           engine_.forward.traits)) {
  const LayerForward<float> layer = LayerOf();
  packed_ = AllocateFloats(engine().pack(layer, format_, nullptr));
  engine().pack(layer, format_, Floats(*packed_));
  ForwardProblem problem(config, engine().traits);
  problem.format = format_;
  if (!Fits(ForwardWay::kOneRow, problem)) return;
  row_arrays_ = AllocateFloats(
      engine_.set_row_layer(layer, format_, Floats(*packed_), nullptr, &row_));
  engine_.set_row_layer(layer, format_, Floats(*packed_), Floats(*row_arrays_),
                        &row_);
}

ForwardProblem FrozenLayer::ProblemOf(const EngineForward<float>& layer) const {
  ForwardProblem problem = tf_lstm_ops::ProblemOf(layer, engine());
  problem.weights = WeightsState::kFilled;
  SetFormat(format_, &problem);
  return problem;
}

// The order of the pre-activations is the engine's.
LayerForward<float> FrozenLayer::LayerOf() const {
  LayerForward<float> layer;
  layer.config = config_;
  layer.config.gate_order = EngineOrder(config_);
  layer.weights = weights_;
  return layer;
}

PlannedForward<float> FrozenLayer::PassOf(
    const EngineForward<float>& layer) const {
  PlannedForward<float> pass;
  pass.layer = &layer;
  pass.plan.format = format_;
  pass.packed = Floats(*packed_);
  pass.is_packed = true;
  return pass;
}

void FrozenLayer::Run(const FrozenLayer* const* layers,
                      LayerForward<float>* passes, const PackedSequence* valid,
                      int count, int threads, CallMemory* memory) {
  std::optional<ForwardArguments<float>> arguments[kMaxTogether];
  PlannedForward<float> planned[kMaxTogether];
  ForwardProblem problems[kMaxTogether];
  for (int k = 0; k < count; ++k) {
    passes[k].config = layers[k]->config_;
    passes[k].weights = layers[k]->weights_;
    planned[k] =
        layers[k]->PassOf(arguments[k].emplace(passes[k], valid[k]).engine());
    problems[k] = layers[k]->ProblemOf(*planned[k].layer);
  }
  const ForwardEngine<float>& engine = layers[0]->engine();
  Reserve(engine, planned[0], problems[0], count, threads, memory);
  PlanAndRun(engine, problems, planned, count, threads, memory);
  for (const auto& one : arguments) {
    if (one) one->Finish();
  }
}

ForwardPlan FrozenLayer::PlanSteps(int64_t batch, int64_t steps, int threads,
                                   CallMemory* memory) const {
  Sequence sequence;
  sequence.batch = batch;
  sequence.time = sequence.steps = steps;
  const PackedSequence valid(sequence);
  EngineForward<float> layer;
  static_cast<LayerForward<float>&>(layer) = LayerOf();
  layer.valid = &valid;
  const ForwardProblem problem = ProblemOf(layer);
  PlannedForward<float> pass = PassOf(layer);
  PlanForward(&problem, 1, threads, &pass.plan);
  Reserve(engine(), pass, problem, 1, threads, memory);
  return pass.plan;
}

void FrozenLayer::RunSteps(const ForwardPlan& plan, const PackedSequence& valid,
                           LayerForward<float>* pass,
                           CallMemory* memory) const {
  pass->config = config_;
  pass->weights = weights_;
  const ForwardArguments<float> arguments(*pass, valid);
  PlannedForward<float> planned = PassOf(arguments.engine());
  planned.plan = plan;
  RunForward(engine(), &planned, 1, memory);
  arguments.Finish();
}

}  // namespace tf_lstm_ops::cpu
