#include "backends/cpu/thread_count.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "backends/cpu/processor/processors.h"
#include "backends/cpu/team/thread_team.h"

namespace tf_lstm_ops::cpu {

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
