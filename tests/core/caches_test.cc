// Tests of backends/cpu/processor/caches.h.
#include "backends/cpu/processor/caches.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

// A folder with files of a Linux system, which is removed at the end.
class System {
 public:
  explicit System(const char* name)
      : root_(std::filesystem::temp_directory_path() /
              (std::string("tf_lstm_ops_caches_") + name)) {
    std::filesystem::remove_all(root_);
  }
  ~System() { std::filesystem::remove_all(root_); }
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  void Add(int index, const char* level, const char* type, const char* size,
           const char* processors) const {
    const auto folder = root_ / "sys/devices/system/cpu/cpu0/cache" /
                        ("index" + std::to_string(index));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "size") << size << "\n";
    std::ofstream(folder / "shared_cpu_list") << processors << "\n";
  }
  Caches Read() const { return ReadCaches(root_.string()); }

 private:
  const std::filesystem::path root_;
};

TEST(CachesAreThoseOfTheSystem) {
  const System system("server");
  system.Add(0, "1", "Data", "48K", "0");
  system.Add(1, "1", "Instruction", "32K", "0");
  system.Add(2, "2", "Unified", "1024K", "0");
  system.Add(3, "3", "Unified", "32768K", "0-7");
  const Caches caches = system.Read();
  CHECK_EQ(caches.l1, 48 << 10);
  CHECK_EQ(caches.l2, 1 << 20);
  CHECK_EQ(caches.shared, 32 << 20);
}

// Two hardware threads of a core, with numbers far apart.
TEST(HardwareThreadsHaveAPartOfTheirCaches) {
  const System system("threads");
  system.Add(0, "1", "Data", "32K", "0,64");
  system.Add(1, "2", "Unified", "2M", "0,64");
  system.Add(2, "3", "Unified", "64M", "0-31,64-95");
  const Caches caches = system.Read();
  CHECK_EQ(caches.l1, 16 << 10);
  CHECK_EQ(caches.l2, 1 << 20);
  CHECK_EQ(caches.shared, 64 << 20);
}

TEST(SystemWithoutSharedCacheSharesItsL2) {
  const System system("cluster");
  system.Add(0, "1", "Data", "64K", "0");
  system.Add(1, "2", "Unified", "4M", "0-3");
  const Caches caches = system.Read();
  CHECK_EQ(caches.l2, 1 << 20);
  CHECK_EQ(caches.shared, 4 << 20);
}

TEST(UnknownCachesHaveDefaults) {
  const System none("none");
  CHECK_EQ(none.Read().l2, Caches().l2);
  const System odd("odd");
  odd.Add(0, "2", "Unified", "", "");
  odd.Add(1, "3", "Unified", "-5K", "x");
  odd.Add(2, "2", "Unified", "1", "0-3");
  CHECK_EQ(odd.Read().l2, Caches().l2);
  CHECK_EQ(odd.Read().shared, Caches().shared);
}

}  // namespace
}  // namespace tf_lstm_ops::cpu
