#include "backends/cpu/engine.h"

#include <cstdlib>
#include <cstring>

#include "backends/cpu/caches.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace tf_lstm_ops {

#if defined(__x86_64__)
namespace x86_64_v2 {
extern const Engine kEngine;
extern const BFloat16Engine kBFloat16;
}  // namespace x86_64_v2
namespace x86_64_v3 {
extern const Engine kEngine;
extern const BFloat16Engine kBFloat16;
}  // namespace x86_64_v3
namespace x86_64_v4 {
extern const Engine kEngine;
extern const BFloat16Engine kBFloat16;
}  // namespace x86_64_v4
namespace x86_64_v4_bf16 {
extern const BFloat16Engine kBFloat16;
}

namespace {

#if defined(TF_LSTM_OPS_EMULATES_DOTS)
// A test compiles the last instruction set with emulated dot products, for
// processors without these instructions.
constexpr bool kEmulatesDots = true;
#else
constexpr bool kEmulatesDots = false;
#endif

const InstructionSet kSets[] = {
    {"x86-64-v2", &x86_64_v2::kEngine, &x86_64_v2::kBFloat16},
    {"x86-64-v3", &x86_64_v3::kEngine, &x86_64_v3::kBFloat16},
    {"x86-64-v4", &x86_64_v4::kEngine, &x86_64_v4::kBFloat16},
    {"x86-64-v4-bf16", &x86_64_v4::kEngine, &x86_64_v4_bf16::kBFloat16},
};

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
  return kEmulatesDots || __builtin_cpu_supports("avx512bf16") ? 4 : 3;
}

}  // namespace
#else
namespace baseline {
extern const Engine kEngine;
extern const BFloat16Engine kBFloat16;
}  // namespace baseline
#if defined(__aarch64__)
namespace armv8_bf16 {
extern const BFloat16Engine kBFloat16;
}
#endif

namespace {

const InstructionSet kSets[] = {
    {"baseline", &baseline::kEngine, &baseline::kBFloat16},
#if defined(__aarch64__)
    {"armv8-bf16", &baseline::kEngine, &armv8_bf16::kBFloat16},
#endif
};

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

}  // namespace
#endif

int AvailableInstructionSets(const InstructionSet** sets) {
  static const int available = CountAvailable();
  *sets = kSets;
  return available;
}

bool cpu::RunsSideBySide(const RnnConfig& config, int64_t element_bytes,
                         int threads) {
  const int64_t weights = GateCount(config.cell) * config.cell_size *
                          config.hidden_size * element_bytes;
  return threads > 1 && kMaxTogether * weights <= TheCaches().l2 / 2 * threads;
}

const InstructionSet& SelectedInstructionSet() {
  static const InstructionSet& selected = []() -> const InstructionSet& {
    const InstructionSet* sets;
    const int count = AvailableInstructionSets(&sets);
    const char* wanted = std::getenv("TF_LSTM_OPS_SIMD");
    for (int k = 0; wanted != nullptr && k < count; ++k) {
      if (std::strcmp(sets[k].name, wanted) == 0) return sets[k];
    }
    return sets[count - 1];
  }();
  return selected;
}

}  // namespace tf_lstm_ops
