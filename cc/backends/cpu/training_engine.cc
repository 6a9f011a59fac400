#include "backends/cpu/training_engine.h"

#include "backends/cpu/instruction_sets.h"

namespace tf_lstm_ops {

#define TF_LSTM_OPS_DECLARE(name, set, bfloat16) \
  namespace set {                                \
  extern const TrainingEngine kTraining;         \
  }                                              \
  namespace bfloat16 {                           \
  extern const BFloat16Engine kBFloat16;         \
  }
TF_LSTM_OPS_INSTRUCTION_SETS(TF_LSTM_OPS_DECLARE)
#undef TF_LSTM_OPS_DECLARE

const TrainingEngine& TrainingEngineFor(
    [[maybe_unused]] const RnnConfig& config) {
#if defined(__x86_64__)
  if (&EngineFor(config) != SelectedInstructionSet().engine) {
    return x86_64_v3::kTraining;
  }
#endif
  return *SelectedTrainingSet().engine;
}

const BFloat16Engine& SelectedBFloat16Engine() {
  const BFloat16Engine* found = SelectedTrainingSet().bfloat16;
#if defined(__x86_64__)
  if (found == &x86_64_v4_amx::kBFloat16 && !MayUseTiles()) {
    found = &x86_64_v4::kBFloat16;
  }
#endif
  return *found;
}

const TrainingSet& SelectedTrainingSet() {
#define TF_LSTM_OPS_ROW(name, set, bfloat16) \
  {&set::kTraining, &bfloat16::kBFloat16},
  static const TrainingSet kSets[] = {
      TF_LSTM_OPS_INSTRUCTION_SETS(TF_LSTM_OPS_ROW)};
#undef TF_LSTM_OPS_ROW
  return kSets[SelectedInstructionSetIndex()];
}

}  // namespace tf_lstm_ops
