// Tests of backends/cpu/processor/processors.h.
#include "backends/cpu/processor/processors.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

// A folder with these files, by name.
using Files = std::map<std::string, std::string>;
struct Root {
  std::filesystem::path path;

  explicit Root(const Files& files) {
    static int count = 0;
    path = std::filesystem::temp_directory_path() /
           ("tf_lstm_ops_processors_" + std::to_string(count++));
    std::filesystem::remove_all(path);
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories((path / name).parent_path());
      std::ofstream(path / name) << text;
    }
  }
  ~Root() { std::filesystem::remove_all(path); }
  int Quota() const { return QuotaProcessors(path.string()); }
};

constexpr char kGroups[] = "proc/self/cgroup";
const std::string kSys = "sys/fs/cgroup/";

TEST(ThereIsNoQuotaWithoutControlGroups) {
  CHECK_EQ(Root(Files{}).Quota(), 0);
  CHECK_EQ(Root(Files{{kGroups, "nonsense\n\n0::/\n"}}).Quota(), 0);
}

TEST(AQuotaOfAContainerIsRoundedUp) {
  const std::map<std::string, int> expected = {
      {"200000 100000\n", 2}, {"250000 100000\n", 3}, {"5000 100000\n", 1},
      {"max 100000\n", 0},    {"0 100000\n", 0},      {"nonsense", 0},
      {"100000 0\n", 0}};
  for (const auto& [text, count] : expected) {
    const Root root(Files{{kGroups, "0::/\n"}, {kSys + "cpu.max", text}});
    CHECK_EQ(root.Quota(), count);
  }
}

TEST(TheLeastQuotaOfTheAncestorsCounts) {
  const Root root(Files{{kGroups, "0::/a/b/c\n"},
                        {kSys + "a/b/c/cpu.max", "800000 100000\n"},
                        {kSys + "a/b/cpu.max", "max 100000\n"},
                        {kSys + "a/cpu.max", "300000 100000\n"}});
  CHECK_EQ(root.Quota(), 3);
}

TEST(VersionOneHasAQuotaToo) {
  const std::string lines = "5:memory:/x\n4:cpuset:/x\n3:cpu,cpuacct:/host\n";
  const std::string folder = kSys + "cpu,cpuacct/";  // of the container
  CHECK_EQ(Root(Files{{kGroups, lines},
                      {folder + "cpu.cfs_quota_us", "150000\n"},
                      {folder + "cpu.cfs_period_us", "100000\n"}})
               .Quota(),
           2);
  CHECK_EQ(Root(Files{{kGroups, lines},
                      {folder + "cpu.cfs_quota_us", "-1\n"},
                      {folder + "cpu.cfs_period_us", "100000\n"}})
               .Quota(),
           0);
}

TEST(ThisProcessMayUseAProcessor) { CHECK(UsableProcessors() > 0); }

}  // namespace
}  // namespace tf_lstm_ops::cpu
