#include "backends/cpu/training_engine.h"

namespace tf_lstm_ops {

#define TF_LSTM_OPS_TRAINING(set)        \
  namespace set {                        \
  extern const TrainingEngine kTraining; \
  extern const BFloat16Engine kBFloat16; \
  }
#define TF_LSTM_OPS_BFLOAT16(set)        \
  namespace set {                        \
  extern const BFloat16Engine kBFloat16; \
  }

#if defined(__x86_64__)
TF_LSTM_OPS_TRAINING(x86_64_v2)
TF_LSTM_OPS_TRAINING(x86_64_v3)
TF_LSTM_OPS_TRAINING(x86_64_v4)
TF_LSTM_OPS_BFLOAT16(x86_64_v4_bf16)
TF_LSTM_OPS_BFLOAT16(x86_64_v4_amx)
#else
TF_LSTM_OPS_TRAINING(baseline)
#if defined(__aarch64__)
TF_LSTM_OPS_BFLOAT16(armv8_bf16)
#endif
#endif

const ForwardEngine<float>& TrainingForwardFor(
    [[maybe_unused]] const RnnConfig& config) {
#if defined(__x86_64__)
  if (&EngineFor(config) != SelectedInstructionSet().engine) {
    return x86_64_v3::kTraining.forward_float;
  }
#endif
  return SelectedTrainingSet().engine->forward_float;
}

const TrainingSet& SelectedTrainingSet() {
  // In the order of AvailableInstructionSets.
  static const TrainingSet kSets[] = {
#if defined(__x86_64__)
      {&x86_64_v2::kTraining, &x86_64_v2::kBFloat16},
      {&x86_64_v3::kTraining, &x86_64_v3::kBFloat16},
      {&x86_64_v4::kTraining, &x86_64_v4::kBFloat16},
      {&x86_64_v4::kTraining, &x86_64_v4_bf16::kBFloat16},
      {&x86_64_v4::kTraining, &x86_64_v4_amx::kBFloat16},
#else
      {&baseline::kTraining, &baseline::kBFloat16},
#if defined(__aarch64__)
      {&baseline::kTraining, &armv8_bf16::kBFloat16},
#endif
#endif
  };
  return kSets[SelectedInstructionSetIndex()];
}

}  // namespace tf_lstm_ops
