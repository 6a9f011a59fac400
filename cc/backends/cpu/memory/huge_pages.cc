#include "backends/cpu/memory/huge_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>

namespace tf_lstm_ops {

void UseHugePages(void* data, size_t bytes) {
#if defined(__linux__)
  const auto address = reinterpret_cast<uintptr_t>(data);
  const size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (bytes < before + kHugePage) return;
  const size_t size = (bytes - before) / kHugePage * kHugePage;
  // A failure costs time only.
  madvise(static_cast<char*>(data) + before, size, MADV_HUGEPAGE);
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

}  // namespace tf_lstm_ops
