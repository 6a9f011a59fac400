// TrainingEngine: the functions of an instruction set that inference of float
// layers does not need. They are apart from Engine, so that a library without
// them does not contain them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_

#include "backends/cpu/backward_engine.h"
#include "backends/cpu/engine.h"

namespace tf_lstm_ops {

struct TrainingEngine {
  // With the way of one step, which frozen layers do not take.
  ForwardEngine<float> forward_float;
  ForwardEngine<double> forward_double;
  BackwardEngine<float> backward_float;
  BackwardEngine<double> backward_double;
};

// The passes of layers with RnnConfig::bfloat16.
struct BFloat16Engine {
  ForwardEngine<float> forward;
  BackwardEngine<float> backward;
};

struct TrainingSet {
  const TrainingEngine* engine;
  const BFloat16Engine* bfloat16;
};

// Those of SelectedInstructionSet().
const TrainingSet& SelectedTrainingSet();
// The passes of bfloat16 layers: those of SelectedTrainingSet(), or of
// x86-64-v4 where the operating system refuses tiles of AMX to this process.
const BFloat16Engine& SelectedBFloat16Engine();
// The passes of a float layer with the instruction set of EngineFor().
const TrainingEngine& TrainingEngineFor(const RnnConfig& config);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_TRAINING_ENGINE_H_
