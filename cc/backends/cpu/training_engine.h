// TrainingEngine: the functions of an instruction set that inference of float
// layers does not need. They are apart from Engine, so that a library without
// them does not contain them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_

#include "backends/cpu/engine.h"

namespace tf_lstm_ops {

// The arguments of the engine for a backward pass, with states and multipliers
// as above. In: h0_grad and c0_grad hold the gradients with respect to the
// final states. Out: they hold the gradients with respect to the initial
// states; h0_grad is undefined unless wants_h0_grad is set. z_grad is null.
template <class T>
struct EngineBackward : LayerBackward<T> {
  const PackedSequence* valid = nullptr;
  bool wants_h0_grad = true;
};

// Computes the passes of `count` layer directions, 1 or kMaxTogether.
template <class T>
using BackwardFunction = void (*)(const EngineBackward<T>* const* layers,
                                  int count, int threads);

struct TrainingEngine {
  // With the way of one step, which frozen layers do not take.
  ForwardEngine<float> forward_float;
  ForwardEngine<double> forward_double;
  BackwardFunction<float> backward_float;
  BackwardFunction<double> backward_double;
  // The backward pass of a step that cpu::IsStepGradient accepts.
  void (*step_gradient_float)(const LayerBackward<float>& layer, int threads);
  void (*step_gradient_double)(const LayerBackward<double>& layer, int threads);
};

// The passes of layers with RnnConfig::bfloat16.
struct BFloat16Engine {
  ForwardEngine<float> forward;
  BackwardFunction<float> backward;
};

struct TrainingSet {
  const TrainingEngine* engine;
  const BFloat16Engine* bfloat16;
};

// Those of SelectedInstructionSet().
const TrainingSet& SelectedTrainingSet();
// Forward passes of a float layer with the instruction set of EngineFor().
const ForwardEngine<float>& TrainingForwardFor(const RnnConfig& config);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_
