#include "backends/cpu/engine.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "backends/cpu/instruction_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace tf_lstm_ops {

#define TF_LSTM_OPS_DECLARE(name, set, bfloat16) \
  namespace set {                                \
  extern const Engine kEngine;                   \
  }                                              \
  namespace bfloat16 {                           \
  extern const Engine kEngine;                   \
  }
TF_LSTM_OPS_INSTRUCTION_SETS(TF_LSTM_OPS_DECLARE)
#undef TF_LSTM_OPS_DECLARE

namespace {

#define TF_LSTM_OPS_ROW(name, set, bfloat16) \
  {name, &set::kEngine, &bfloat16::kEngine},
const InstructionSet kSets[] = {TF_LSTM_OPS_INSTRUCTION_SETS(TF_LSTM_OPS_ROW)};
#undef TF_LSTM_OPS_ROW

#if defined(__x86_64__)

#if defined(TF_LSTM_OPS_EMULATES_DOTS)
// A test compiles x86-64-v4-bf16 with emulated dot products, for processors
// without these instructions.
constexpr bool kEmulatesDots = true;
#else
constexpr bool kEmulatesDots = false;
#endif

// Whether the processor has tiles of bfloat16, and Linux gives them to
// processes that ask: see MayUseTiles.
bool HasTiles() {
#if defined(TF_LSTM_OPS_ASSUMES_TILES)
  return true;  // in a test that runs their instructions by itself
#endif
  constexpr unsigned kTilesOfBFloat16 = 1u << 22 | 1u << 24;
  unsigned a = 0, b = 0, c = 0, features = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &features)) return false;
  if ((features & kTilesOfBFloat16) != kTilesOfBFloat16) return false;
#if defined(__linux__)
  constexpr long kGetSupported = 0x1021;             // ARCH_GET_XCOMP_SUPP
  constexpr uint64_t kTileData = uint64_t{1} << 18;  // XFEATURE_MASK_XTILE_DATA
  uint64_t supported = 0;
  return syscall(SYS_arch_prctl, kGetSupported, &supported) == 0 &&
         (supported & kTileData) != 0;
#else
  return false;
#endif
}

// Whether dot products of pairs are faster than multiply-adds of widened
// elements. They are slower on Intel's processors: on a Xeon 6 a call took 1.14
// to 1.8 times as long.
bool HasFastDots() {
  return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
}

static_assert(std::size(kSets) == 5);

int CountAvailable() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (!v3) return 1;
  const bool v4 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!v4) return 2;
  if (HasTiles()) return 5;
  return kEmulatesDots || HasFastDots() ? 4 : 3;
}
#else
int CountAvailable() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr uint64_t kHasBFloat16 = 1 << 14;  // HWCAP2_BF16
  return getauxval(AT_HWCAP2) & kHasBFloat16 ? 2 : 1;
#elif defined(__aarch64__) && defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  sysctlbyname("hw.optional.arm.FEAT_BF16", &has, &size, nullptr, 0);
  return has ? 2 : 1;
#else
  return 1;
#endif
}
#endif

// Asks Linux to let this process use tiles. Without permission their first
// instruction would end the process.
bool RequestTiles() {
#if defined(TF_LSTM_OPS_ASSUMES_TILES)
  return true;  // in a test that runs their instructions by itself
#elif defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// No static variables of functions, for the reason in first_use.h.
std::atomic<int> g_tiles{-1};  // whether they may be used; -1: not asked
std::atomic<int> g_available{0};
std::atomic<const InstructionSet*> g_selected{nullptr};

const InstructionSet* SelectInstructionSet() {
  const InstructionSet* sets;
  const int count = AvailableInstructionSets(&sets);
  const char* wanted = std::getenv("TF_LSTM_OPS_SIMD");
  for (int k = 0; wanted != nullptr && k < count; ++k) {
    if (std::strcmp(sets[k].name, wanted) == 0) return &sets[k];
  }
  return &sets[count - 1];
}

}  // namespace

int AvailableInstructionSets(const InstructionSet** sets) {
  int available = g_available;
  if (available == 0) g_available = available = CountAvailable();
  *sets = kSets;
  return available;
}

const InstructionSet& SelectedInstructionSet() {
  const InstructionSet* selected = g_selected;
  if (selected == nullptr) {
    // Of two threads that select, the first one decides.
    const InstructionSet* found = SelectInstructionSet();
    if (g_selected.compare_exchange_strong(selected, found)) selected = found;
  }
  return *selected;
}

int SelectedInstructionSetIndex() {
  const InstructionSet* sets;
  AvailableInstructionSets(&sets);
  return static_cast<int>(&SelectedInstructionSet() - sets);
}

bool MayUseTiles() {
  int may = g_tiles;
  if (may < 0) {
    // Of two threads that ask, the first one decides, so that all calls have
    // the same bits.
    const int found = RequestTiles() ? 1 : 0;
    if (g_tiles.compare_exchange_strong(may, found)) may = found;
  }
  return may == 1;
}

const Engine& BFloat16ProductsEngine() {
  const Engine* found = SelectedInstructionSet().bfloat16;
#if defined(__x86_64__)
  if (found == &x86_64_v4_amx::kEngine && !MayUseTiles()) {
    found = &x86_64_v4::kEngine;
  }
#endif
  return *found;
}

const Engine& FrozenEngine(const GateMatrices<const float>& weights,
                           int64_t elements, const Engine* otherwise) {
  // Fewer products take less time than the rounding of what is multiplied.
  constexpr int64_t kLeast = 16384;
  if (!weights.rounds_factors || elements < kLeast) return *otherwise;
  const Engine& found = BFloat16ProductsEngine();
  return found.forward.traits.dots_pairs ? found : *otherwise;
}

const Engine& EngineFor([[maybe_unused]] const RnnConfig& config) {
  const Engine& selected = *SelectedInstructionSet().engine;
#if defined(__x86_64__)
  // With eight units x86-64-v3 took 0.51 to 0.9 of the time: half of the bytes
  // of packed weights. Layer normalisation adds lanes in the order of a vector.
  const Engine& half = x86_64_v3::kEngine;
  if (selected.forward.traits.lanes == 2 * half.forward.traits.lanes &&
      config.cell_size <= half.forward.traits.lanes &&
      !CellShapeOf(config.cell).reduces_rows) {
    return half;
  }
#endif
  return selected;
}

}  // namespace tf_lstm_ops
