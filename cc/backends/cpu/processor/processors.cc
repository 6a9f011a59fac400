#include "backends/cpu/processor/processors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "backends/cpu/processor/text_file.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace tf_lstm_ops::cpu {
namespace {

// A control group of the process.
struct Group {
  bool is_version_2;
  std::string folder;  // in sys/fs/cgroup, such as "/cpu"; empty in version 2
  std::string path;    // such as "/user.slice"
};

// Reads proc/self/cgroup: lines "number:controllers:path". Version 2 has no
// controllers.
std::vector<Group> Groups(const std::string& root) {
  std::vector<Group> groups;
  const std::string text = ReadText(root + "/proc/self/cgroup");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool has_cpu = ("," + names + ",").find(",cpu,") != std::string::npos;
    if (!names.empty() && !has_cpu) continue;
    groups.push_back({names.empty(), names.empty() ? "" : "/" + names,
                      line.substr(second + 1)});
  }
  return groups;
}

// The number at the start of a text; 0 if there is none.
double NumberAt(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

// Returns the quota of one group in processors; 0 if there is none.
double QuotaOf(const Group& group, const std::string& folder) {
  double quota, period;
  if (group.is_version_2) {
    const std::string both = ReadText(folder + "/cpu.max");  // or "max 100000"
    char* end = nullptr;
    quota = std::strtod(both.c_str(), &end);
    period = std::strtod(end, nullptr);
  } else {
    quota = NumberAt(ReadText(folder + "/cpu.cfs_quota_us"));  // -1: none
    period = NumberAt(ReadText(folder + "/cpu.cfs_period_us"));
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

std::atomic<int> g_quota{-1};  // unknown

}  // namespace

int QuotaProcessors(const std::string& root) {
  double least = 0;
  for (Group group : Groups(root)) {
    // Each ancestor can have a quota. In a container the path may be that of
    // the host, and only the last folder exists.
    for (;;) {
      const std::string folder =
          root + "/sys/fs/cgroup" + group.folder + group.path;
      const double quota = QuotaOf(group, folder);
      if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
      const size_t slash = group.path.rfind('/');
      if (slash == std::string::npos) break;
      group.path.resize(slash);
    }
  }
  return static_cast<int>(std::ceil(std::min(least, 1e6)));
}

int UsableProcessors() {
  // No static variable, for the reason in first_use.h.
  int quota = g_quota;
  if (quota < 0) g_quota = quota = QuotaProcessors("");
  int count = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    count = CPU_COUNT(&allowed);
  }
#endif
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace tf_lstm_ops::cpu
