#include "backends/cpu/processor/caches.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cpu/memory/first_use.h"
#include "backends/cpu/processor/text_file.h"

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace tf_lstm_ops::cpu {
namespace {

// "48K" and "32M" in bytes; 0 if `text` is not a size.
int64_t Bytes(const std::string& text) {
  char* unit = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &unit, 10);
  constexpr int64_t kKibi = 1024;
  return number * (*unit == 'M' ? kKibi * kKibi : *unit == 'K' ? kKibi : 1);
}

// The number of processors in a list such as "0-1,8-9".
int64_t CountProcessors(const std::string& list) {
  int64_t count = 0;
  for (const char* at = list.c_str(); *at != '\0';) {
    char* end = nullptr;
    const int64_t first = std::strtoll(at, &end, 10);
    int64_t last = first;
    if (*end == '-') last = std::strtoll(end + 1, &end, 10);
    count += std::max<int64_t>(last - first + 1, 0);
    at = *end == ',' ? end + 1 : "";
  }
  return std::max<int64_t>(count, 1);
}

#if defined(__APPLE__)
// A value of the fast cores, 0 if there is none.
int64_t ReadOfFastCores(const char* name) {
  int64_t value = 0;
  size_t size = sizeof value;
  sysctlbyname((std::string("hw.perflevel0.") + name).c_str(), &value, &size,
               nullptr, 0);
  return value;
}

void ReadSystem(Caches* caches) {
  const int64_t l1 = ReadOfFastCores("l1dcachesize");
  const int64_t l2 = ReadOfFastCores("l2cachesize");
  const int64_t sharers = ReadOfFastCores("cpusperl2");
  if (l1 > 0) caches->l1 = l1;
  if (l2 <= 0) return;
  caches->l2 = l2 / std::max<int64_t>(sharers, 1);
  caches->shared = l2;
}
#else
void ReadSystem(Caches*) {}
#endif

FirstUse<const Caches> g_caches;

}  // namespace

Caches ReadCaches(const std::string& root) {
  Caches caches;
  const std::string folder = root + "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index);
    const std::string level = ReadWord(cache + "/level");
    if (level.empty()) return caches;
    const int64_t size = Bytes(ReadWord(cache + "/size"));
    const int64_t part =
        size / CountProcessors(ReadWord(cache + "/shared_cpu_list"));
    if (ReadWord(cache + "/type") == "Instruction" || part <= 0) continue;
    if (level == "1") caches.l1 = part;
    if (level == "2") caches.l2 = part;
    // The last level is shared by all its processors.
    if (level != "1") caches.shared = size;
  }
}

const Caches& TheCaches() {
  return g_caches.Get([] {
    auto read = std::make_unique<Caches>(ReadCaches(""));
    ReadSystem(read.get());
    return read;
  });
}

}  // namespace tf_lstm_ops::cpu
