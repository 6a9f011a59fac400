#include "backends/cpu/layer.h"

#include <cassert>
#include <iterator>
#include <optional>

#include "backends/cpu/backward_pass.h"
#include "backends/cpu/engine_arguments.h"
#include "backends/cpu/forward_pass.h"
#include "backends/cpu/training_engine.h"
#include "backends/cpu/weights/hash_weights.h"

namespace tf_lstm_ops::cpu {
namespace {

const ForwardEngine<float>& SelectedForward(const LayerForward<float>& layer) {
  return layer.config.bfloat16 ? SelectedBFloat16Engine().forward
                               : TrainingEngineFor(layer.config).forward_float;
}
const ForwardEngine<double>& SelectedForward(const LayerForward<double>&) {
  return SelectedTrainingSet().engine->forward_double;
}
const BackwardEngine<float>& SelectedBackward(
    const LayerBackward<float>& layer) {
  return layer.config.bfloat16 ? SelectedBFloat16Engine().backward
                               : TrainingEngineFor(layer.config).backward_float;
}
const BackwardEngine<double>& SelectedBackward(const LayerBackward<double>&) {
  return SelectedTrainingSet().engine->backward_double;
}

// An array of `size` elements without gaps. Absent weights have no bytes.
template <class T>
WeightBytes BytesOf(const GateMatrices<T>& weights, int64_t size) {
  if (!weights) return {nullptr, 0};
  const auto elements = static_cast<size_t>(size);
  if (weights.bfloat16) return {weights.bfloat16, elements * sizeof(BFloat16)};
  return {weights.data, elements * sizeof(T)};
}

// The weights that an engine packs.
template <class T>
WeightsKey KeyOf(const EngineForward<T>& args, const ForwardEngine<T>& engine,
                 WeightFormat format, int threads) {
  const RnnConfig& config = args.config;
  const int64_t input = config.input_size, cell = config.cell_size,
                hidden = config.hidden_size;
  const int64_t gates = GateCount(config.cell) * cell;
  const WeightBytes arrays[] = {
      BytesOf(args.weights.input, input * gates),
      BytesOf(args.weights.recurrent, hidden * gates),
      BytesOf(args.weights.projection, cell * hidden)};
  const WeightsHash hash =
      HashWeights(arrays, static_cast<int>(std::size(arrays)), threads);
  return {static_cast<uint64_t>(input),
          static_cast<uint64_t>(cell),
          static_cast<uint64_t>(hidden),
          static_cast<uint64_t>(config.cell),
          static_cast<uint64_t>(format),
          reinterpret_cast<uintptr_t>(&engine),
          hash[0],
          hash[1]};
}

// Memory of packed weights, and whether it holds them.
template <class T>
void UseKeptWeights(const ForwardEngine<T>& engine, PackedWeights* kept,
                    PlannedForward<T>* pass, ForwardProblem* problem) {
  if (!kept) return;
  const int64_t size = engine.pack(*pass->layer, problem->format, nullptr);
  pass->packed = static_cast<T*>(kept->Memory(size * sizeof(T)));
  pass->is_packed = kept->filled();
  problem->weights =
      pass->is_packed ? WeightsState::kFilled : WeightsState::kEmpty;
}

}  // namespace

template <class T>
void ComputeForward(const LayerForward<T>* layers, const PackedSequence* valid,
                    size_t count, int threads, KeptWeights* kept) {
  const ForwardEngine<T>& engine = SelectedForward(*layers);
  std::optional<ForwardArguments<T>> arguments[kMaxTogether];
  std::optional<PackedWeightsUse> uses[kMaxTogether];
  PlannedForward<T> passes[kMaxTogether];
  ForwardProblem problems[kMaxTogether];
  for (size_t k = 0; k < count; ++k) {
    const EngineForward<T>& args =
        arguments[k].emplace(layers[k], valid[k]).engine();
    passes[k].layer = &args;
    problems[k] = ProblemOf(args, engine);
    if (!kept || problems[k].rows == 0 || ReadsInPlace(problems[k])) continue;
    const PackedWeightsUse& use = uses[k].emplace(
        kept[k].Find(KeyOf(args, engine, problems[k].format, threads)));
    UseKeptWeights(engine, use.get(), &passes[k], &problems[k]);
  }
  CallMemory memory;
  PlanAndRun(engine, problems, passes, static_cast<int>(count), threads,
             &memory);
  for (auto& use : uses) {
    if (use) use->Filled();
  }
  for (const auto& one : arguments) {
    if (one) one->Finish();
  }
}

template <class T>
void ComputeBackward(const LayerBackward<T>* layers,
                     const PackedSequence* valid, size_t count, int threads) {
  const BackwardEngine<T>& engine = SelectedBackward(*layers);
  BackwardProblem problems[kMaxTogether];
  BackwardPlan plans[kMaxTogether];
  for (size_t k = 0; k < count; ++k) {
    problems[k] = ProblemOf(layers[k], valid[k], engine);
  }
  PlanBackward(problems, static_cast<int>(count), threads, plans);
  if (plans->way == BackwardWay::kStepGradient) {
    assert(count == 1);
    return engine.run_step(*layers, plans->threads);
  }
  std::optional<BackwardArguments<T>> arguments[kMaxTogether];
  PlannedBackward<T> passes[kMaxTogether];
  for (size_t k = 0; k < count; ++k) {
    passes[k] = {&arguments[k].emplace(layers[k], valid[k]).engine(), plans[k]};
  }
  CallMemory memory;
  RunBackward(engine, passes, static_cast<int>(count), &memory);
  for (const auto& one : arguments) {
    if (one) one->Finish(threads);
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define TF_LSTM_OPS_INSTANTIATE(T)                                            \
  template void ComputeForward(const LayerForward<T>*, const PackedSequence*, \
                               size_t, int, KeptWeights*);                    \
  template void ComputeBackward(const LayerBackward<T>*,                      \
                                const PackedSequence*, size_t, int);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
#undef TF_LSTM_OPS_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace tf_lstm_ops::cpu
