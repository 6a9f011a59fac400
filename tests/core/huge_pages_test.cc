// Tests of backends/cpu/memory/huge_pages.h.
#include "backends/cpu/memory/huge_pages.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "harness.h"

namespace tf_lstm_ops {
namespace {

TEST(HugePagesKeepContents) {
  std::vector<char> bytes(3 * kHugePage, 7);
  for (const size_t begin : {size_t{0}, size_t{1}, kHugePage - 1}) {
    for (const size_t size : {size_t{0}, size_t{1}, kHugePage, 2 * kHugePage}) {
      UseHugePages(bytes.data() + begin, size);
    }
  }
  UseHugePages(nullptr, 0);
  CHECK(bytes == std::vector<char>(3 * kHugePage, 7));
}

#if defined(__linux__)

// Calls visit(begin, end, flags) for each range of the process's memory.
template <class Visit>
void ForEachRange(const Visit& visit) {
  std::ifstream smaps("/proc/self/smaps");
  uintptr_t begin = 0, end = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    char dash = 0;
    uintptr_t first = 0, last = 0;
    if (line.rfind("VmFlags:", 0) == 0) {
      visit(begin, end, line + " ");
    } else if (words >> std::hex >> first >> dash >> last && dash == '-') {
      begin = first;
      end = last;
    }
  }
}

TEST(HugePagesLieInTheRange) {
  constexpr size_t kSize = 8 * kHugePage, kOffset = 4096;
  void* const data = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  const auto start = reinterpret_cast<uintptr_t>(data);
  const bool available = madvise(data, kSize, MADV_NOHUGEPAGE) == 0;
  UseHugePages(static_cast<char*>(data) + kOffset, 4 * kHugePage);
  size_t huge = 0;
  ForEachRange([&](uintptr_t begin, uintptr_t end, const std::string& flags) {
    if (begin < start || end > start + kSize) return;
    if (flags.find(" hg ") == std::string::npos) return;
    CHECK_EQ(begin % kHugePage, 0U);
    CHECK_EQ(end % kHugePage, 0U);
    CHECK(begin >= start + kOffset);
    CHECK(end <= start + kOffset + 4 * kHugePage);
    huge += end - begin;
  });
  // A kernel without huge pages has no such flag.
  CHECK(!available || huge >= 3 * kHugePage);
  munmap(data, kSize);
}

#endif

}  // namespace
}  // namespace tf_lstm_ops
