#include "backends/cpu/layer.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "backends/cpu/engine.h"
#include "backends/cpu/engine_arguments.h"
#include "backends/cpu/hash_weights.h"
#include "backends/cpu/processors.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::cpu {
namespace {

// Several threads are faster from about a million multiply-adds a call (20
// microseconds) and 15,000 multiply-adds a step. `work` is the number of
// multiply-adds of one valid step.
int UsefulThreads(const PackedSequence& packed, double work, int threads) {
  const double total = work * static_cast<double>(packed.size());
  const auto steps = static_cast<double>(std::max<int64_t>(packed.steps, 1));
  return total < 1e6 || total / steps < 1.5e4 ? 1 : threads;
}

double WeightsOf(const RnnConfig& config) {
  return static_cast<double>(GateCount(config.cell)) *
         static_cast<double>(config.cell_size) *
         static_cast<double>(config.hidden_size + config.input_size);
}

// Of a step without products: the cell's equations and their memory.
double EquationsOf(const RnnConfig& config) {
  constexpr double kOfUnit = 60;
  return kOfUnit * static_cast<double>(config.cell_size);
}

template <class T>
double WorkOf(const EngineBackward<T>& args) {
  const bool multiplies = args.packed->steps > 1 || args.wants_h0_grad ||
                          args.x_grad || args.weights_grad.input ||
                          args.weights_grad.recurrent;
  return multiplies ? WeightsOf(args.config) : EquationsOf(args.config);
}

// Whether the pass is one step of an LSTM that needs no product and no sum
// other than those of the peepholes.
template <class T>
bool IsStepGradient(const LayerBackward<T>& layer) {
  const Sequence& sequence = layer.sequence;
  const RnnWeights<T>& weights = layer.weights_grad;
  const bool is_step =
      sequence.time == 1 && sequence.steps == 1 && sequence.all_valid() &&
      layer.config.cell == CellKind::kLstm && !layer.config.projected() &&
      layer.saved.data[kSavedCo] && !layer.saved.packed;
  const bool has_product = layer.h0_grad.data || layer.x_grad ||
                           weights.input || weights.recurrent ||
                           weights.input_bias || weights.recurrent_bias;
  return is_step && !has_product && layer.z_grad && !layer.final_h_grad.data &&
         !layer.final_c_grad.data;
}

void RunStepGradient(const LayerBackward<float>& layer, int threads) {
  SelectedInstructionSet().engine->step_gradient_float(layer, threads);
}
void RunStepGradient(const LayerBackward<double>& layer, int threads) {
  SelectedInstructionSet().engine->step_gradient_double(layer, threads);
}

ForwardFunction<float> ForwardOf(const EngineForward<float>& args) {
  const InstructionSet& set = SelectedInstructionSet();
  return args.config.bfloat16 ? set.bfloat16->forward
                              : set.engine->forward_float;
}
ForwardFunction<double> ForwardOf(const EngineForward<double>&) {
  return SelectedInstructionSet().engine->forward_double;
}
BackwardFunction<float> BackwardOf(const EngineBackward<float>& args) {
  const InstructionSet& set = SelectedInstructionSet();
  return args.config.bfloat16 ? set.bfloat16->backward
                              : set.engine->backward_float;
}
BackwardFunction<double> BackwardOf(const EngineBackward<double>&) {
  return SelectedInstructionSet().engine->backward_double;
}

// Whether to run two layer directions side by side. A step then synchronises
// once for both. Threads alternate between two sets of recurrent weights, which
// is faster while both sets fit into half of an L2 cache. `threads` is the
// number of threads that run a step of both.
template <class T>
bool SideBySide(const RnnConfig& config, size_t layers, int threads) {
  constexpr double kBytes = 512 << 10;
  const auto cell = static_cast<double>(config.cell_size);
  const double weights = GateCount(config.cell) * cell *
                         static_cast<double>(config.hidden_size) * sizeof(T);
  return layers == kMaxTogether && threads > 1 &&
         kMaxTogether * weights <= kBytes * threads;
}

bool PacksWeights(const EngineForward<float>& args) {
  return SelectedInstructionSet().engine->packs_weights_float(args);
}
bool PacksWeights(const EngineForward<double>& args) {
  return SelectedInstructionSet().engine->packs_weights_double(args);
}

// An array of `size` elements without gaps. Absent weights have no bytes.
template <class T>
WeightBytes BytesOf(const GateMatrices<T>& weights, int64_t size) {
  if (!weights) return {nullptr, 0};
  const auto elements = static_cast<size_t>(size);
  if (weights.bfloat16) return {weights.bfloat16, elements * sizeof(BFloat16)};
  return {weights.data, elements * sizeof(T)};
}

// The weights that the engine packs.
template <class T>
WeightsKey KeyOf(const EngineForward<T>& args, int threads) {
  const RnnConfig& config = args.config;
  const int64_t input = config.input_size, cell = config.cell_size,
                hidden = config.hidden_size;
  const int64_t gates = GateCount(config.cell) * cell;
  const WeightBytes arrays[] = {
      BytesOf(args.weights.input, input * gates),
      BytesOf(args.weights.recurrent, hidden * gates),
      BytesOf(args.weights.projection, cell * hidden)};
  const uint64_t hash =
      HashWeights(arrays, static_cast<int>(std::size(arrays)), threads);
  return {static_cast<uint64_t>(input), static_cast<uint64_t>(cell),
          static_cast<uint64_t>(hidden), hash};
}

template <class T>
void RunForward(const EngineForward<T>& args, int threads, KeptWeights* kept) {
  const int useful =
      UsefulThreads(*args.packed, WeightsOf(args.config), threads);
  const bool keeps = kept && args.packed->size() > 0 && PacksWeights(args);
  PackedWeightsUse weights(keeps ? kept->Find(KeyOf(args, threads)) : nullptr);
  ForwardOf(args)(&args, 1, useful, weights.get());
  weights.Filled();
}

template <class T>
void RunBackward(const EngineBackward<T>& args, int threads) {
  BackwardOf(args)(&args, 1,
                   UsefulThreads(*args.packed, WorkOf(args), threads));
}

// The arguments of all layer directions, made contiguous.
template <class Arguments, class Layer>
std::vector<std::unique_ptr<Arguments>> MakeArguments(
    const std::vector<Layer>& layers, const PackedSequences& packed) {
  std::vector<std::unique_ptr<Arguments>> all;
  all.reserve(layers.size());
  for (size_t d = 0; d < layers.size(); ++d) {
    all.push_back(std::make_unique<Arguments>(layers[d], *packed[d]));
  }
  return all;
}

template <class Engine, class Arguments>
std::vector<Engine> Engines(
    const std::vector<std::unique_ptr<Arguments>>& all) {
  std::vector<Engine> engines;
  engines.reserve(all.size());
  for (const auto& arguments : all) engines.push_back(arguments->engine());
  return engines;
}

template <class T>
void RunForward(const std::vector<EngineForward<T>>& layers, int threads) {
  const EngineForward<T>& first = layers[0];
  const double work = kMaxTogether * WeightsOf(first.config);
  const int both = UsefulThreads(*first.packed, work, threads);
  if (SideBySide<T>(first.config, layers.size(), both)) {
    return ForwardOf(first)(layers.data(), kMaxTogether, both, nullptr);
  }
  for (const auto& layer : layers) RunForward(layer, threads, nullptr);
}

template <class T>
void RunBackward(const std::vector<EngineBackward<T>>& layers, int threads) {
  const EngineBackward<T>& first = layers[0];
  const double work = kMaxTogether * WorkOf(first);
  const int both = UsefulThreads(*first.packed, work, threads);
  if (SideBySide<T>(first.config, layers.size(), both)) {
    return BackwardOf(first)(layers.data(), kMaxTogether, both);
  }
  for (const auto& layer : layers) RunBackward(layer, threads);
}

}  // namespace

template <class T>
void ComputeForward(const LayerForward<T>& layer, const PackedSequence& packed,
                    int threads, KeptWeights* kept) {
  const ForwardArguments<T> arguments(layer, packed);
  RunForward(arguments.engine(), threads, kept);
  arguments.Finish();
}

template <class T>
void ComputeBackward(const LayerBackward<T>& layer,
                     const PackedSequence& packed, int threads) {
  if (IsStepGradient(layer)) {
    return RunStepGradient(
        layer, UsefulThreads(packed, EquationsOf(layer.config), threads));
  }
  const BackwardArguments<T> arguments(layer, packed);
  RunBackward(arguments.engine(), threads);
  arguments.Finish(threads);
}

template <class T>
void ComputeForward(const std::vector<LayerForward<T>>& layers,
                    const PackedSequences& packed, int threads) {
  const auto all = MakeArguments<ForwardArguments<T>>(layers, packed);
  RunForward(Engines<EngineForward<T>>(all), threads);
  for (const auto& arguments : all) arguments->Finish();
}

template <class T>
void ComputeBackward(const std::vector<LayerBackward<T>>& layers,
                     const PackedSequences& packed, int threads) {
  const auto all = MakeArguments<BackwardArguments<T>>(layers, packed);
  RunBackward(Engines<EngineBackward<T>>(all), threads);
  for (const auto& arguments : all) arguments->Finish(threads);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define TF_LSTM_OPS_INSTANTIATE(T)                                            \
  template void ComputeForward(const LayerForward<T>&, const PackedSequence&, \
                               int, KeptWeights*);                            \
  template void ComputeBackward(const LayerBackward<T>&,                      \
                                const PackedSequence&, int);                  \
  template void ComputeForward(const std::vector<LayerForward<T>>&,           \
                               const PackedSequences&, int);                  \
  template void ComputeBackward(const std::vector<LayerBackward<T>>&,         \
                                const PackedSequences&, int);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
#undef TF_LSTM_OPS_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

int ThreadCount(int configured) {
  const auto capped = [](int64_t number) {
    return static_cast<int>(std::clamp<int64_t>(number, 1, kMaxThreads));
  };
  if (configured > 0) return capped(configured);
  // Once: Python may change the environment while another thread reads it.
  static const int64_t variable = [] {
    const char* text = std::getenv("TF_NUM_INTRAOP_THREADS");
    return text ? int64_t{std::strtoll(text, nullptr, 10)} : 0;
  }();
  return capped(variable > 0 ? variable : UsableProcessors());
}

}  // namespace tf_lstm_ops::cpu
