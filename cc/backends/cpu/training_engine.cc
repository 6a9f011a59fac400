#include "backends/cpu/training_engine.h"

#include <atomic>

#include "backends/cpu/instruction_sets.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

const ForwardEngine<float>& TrainingForwardFor(
    [[maybe_unused]] const RnnConfig& config) {
#if defined(__x86_64__)
  if (&EngineFor(config) != SelectedInstructionSet().engine) {
    return x86_64_v3::kTraining.forward_float;
  }
#endif
  return SelectedTrainingSet().engine->forward_float;
}

namespace {

// No static variable of a function, for the reason in first_use.h.
std::atomic<const BFloat16Engine*> g_bfloat16{nullptr};

#if defined(__x86_64__)
// Asks Linux to let this process use tiles. Without permission their first
// instruction would end the process. With it, Linux saves 8 KiB more of a
// thread on signals, so the process can set no small alternate stack for them.
bool RequestTiles() {
#if defined(TF_LSTM_OPS_ASSUMES_TILES)
  return true;  // in a test that runs their instructions by itself
#elif defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

}  // namespace

const BFloat16Engine& SelectedBFloat16Engine() {
  const BFloat16Engine* selected = g_bfloat16;
  if (selected == nullptr) {
    const BFloat16Engine* found = SelectedTrainingSet().bfloat16;
#if defined(__x86_64__)
    if (found == &x86_64_v4_amx::kBFloat16 && !RequestTiles()) {
      found = &x86_64_v4::kBFloat16;
    }
#endif
    // Of two threads that ask, the first one decides, so that all calls have
    // the same bits.
    if (g_bfloat16.compare_exchange_strong(selected, found)) selected = found;
  }
  return *selected;
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
