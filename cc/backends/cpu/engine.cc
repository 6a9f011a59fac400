#include "backends/cpu/engine.h"

#include <cstdlib>
#include <cstring>

namespace tf_lstm_ops {

#if defined(__x86_64__)
namespace x86_64_v2 {
extern const Engine kEngine;
}
namespace x86_64_v3 {
extern const Engine kEngine;
}
namespace x86_64_v4 {
extern const Engine kEngine;
}

namespace {

const InstructionSet kSets[] = {
    {"x86-64-v2", &x86_64_v2::kEngine},
    {"x86-64-v3", &x86_64_v3::kEngine},
    {"x86-64-v4", &x86_64_v4::kEngine},
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
  return v4 ? 3 : 2;
}

}  // namespace
#else
namespace baseline {
extern const Engine kEngine;
}

namespace {

const InstructionSet kSets[] = {{"baseline", &baseline::kEngine}};

int CountAvailable() { return 1; }

}  // namespace
#endif

int AvailableInstructionSets(const InstructionSet** sets) {
  static const int available = CountAvailable();
  *sets = kSets;
  return available;
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
