// Tests of backends/cpu/team/thread_team.h.
#include "backends/cpu/team/thread_team.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

#if !defined(_WIN32)
// Of objects with a large alignment, such as the team.
static std::atomic<bool> g_has_memory{true};
void* operator new(size_t size, std::align_val_t alignment) {
  const auto step = static_cast<size_t>(alignment);
  void* memory = g_has_memory
                     ? std::aligned_alloc(step, (size + step - 1) / step * step)
                     : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#endif

namespace tf_lstm_ops {
namespace {

// Counts how often each item was done, and that none was done early.
struct Count {
  static constexpr int64_t kPhases = 50;
  std::vector<std::atomic<int>> done;
  std::atomic<int> early{0};

  Count() : done(kPhases * 16) {}
  static int64_t ItemsOf(int64_t phase) {
    return phase % 5 == 3 ? 0 : phase % 16;
  }
  static int64_t Items(const void*, int64_t phase) { return ItemsOf(phase); }
  static void Run(void* state, int64_t phase, int64_t item, int) {
    Count& count = *static_cast<Count*>(state);
    for (int64_t before = 0; before < phase; ++before) {
      for (int64_t k = 0; k < ItemsOf(before); ++k) {
        if (count.done[before * 16 + k].load() != 1) ++count.early;
      }
    }
    ++count.done[phase * 16 + item];
  }
  void Check() const {
    CHECK_EQ(early.load(), 0);
    for (int64_t phase = 0; phase < kPhases; ++phase) {
      for (int64_t item = 0; item < 16; ++item) {
        CHECK_EQ(done[phase * 16 + item].load(), item < ItemsOf(phase) ? 1 : 0);
      }
    }
  }
};

void RunCount(int threads) {
  Count count;
  RunJob({&count, Count::kPhases, &Count::Items, &Count::Run}, threads);
  count.Check();
}

TEST(TeamDoesEachItemOnceAndInOrder) {
  for (int round = 0; round < 200; ++round) {
    for (int threads : {1, 2, 3, 7, 40}) RunCount(threads);
  }
}

#if !defined(_WIN32)
// Two items that wait for each other, which one thread alone cannot do.
TEST(TeamServesTheCallAfterOneWithoutMemory) {
  g_has_memory = false;
  bool failed = false;
  try {
    RunCount(2);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  CHECK(failed);
  g_has_memory = true;
  std::atomic<int> met{0};
  const Job job = {&met, 1, [](const void*, int64_t) { return int64_t{2}; },
                   [](void* state, int64_t, int64_t, int) {
                     auto& count = *static_cast<std::atomic<int>*>(state);
                     ++count;
                     const auto end = std::chrono::steady_clock::now() +
                                      std::chrono::seconds(20);
                     while (count < 2) {
                       CHECK(std::chrono::steady_clock::now() < end);
                       std::this_thread::yield();
                     }
                   }};
  RunJob(job, 2);
}
#endif

TEST(TeamDoesNothingBeforeItsFirstPhase) {
  constexpr int64_t kItems = 16;
  using Counts = std::vector<std::atomic<int>>;
  Counts done(kItems);
  const Job job = {&done, 1, [](const void*, int64_t) { return kItems; },
                   [](void* state, int64_t, int64_t item, int) {
                     ++(*static_cast<Counts*>(state))[item];
                   }};
  RunJob(job, 64);  // the first workers run while the last ones are created
  for (const std::atomic<int>& times : done) CHECK_EQ(times.load(), 1);
}

#if defined(__linux__)
// Nanoseconds that each worker has run, in ascending order.
std::vector<int64_t> TimesOfWorkers() {
  std::vector<int64_t> times;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "tf_lstm_ops") continue;
    int64_t time = 0;
    std::ifstream(task.path() / "schedstat") >> time;
    times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Workers that a job does not use sleep through its phases.
TEST(TeamOfManyThreadsLeavesThemAsleepInJobsOfTwo) {
  RunCount(16);
  // Items of some microseconds, so that a worker that woke would spin.
  const Job job = {nullptr, 5000,
                   [](const void*, int64_t) { return int64_t{4}; },
                   [](void*, int64_t, int64_t, int) {
                     for (volatile int k = 0; k < 10000; k = k + 1) {
                     }
                   }};
  RunJob({nullptr, 10, job.items, job.run}, 2);  // the others fall asleep
  const std::vector<int64_t> before = TimesOfWorkers();
  RunJob(job, 2);
  const std::vector<int64_t> after = TimesOfWorkers();
  CHECK_EQ(after.size(), 15U);
  int64_t idle = 0, all = 0;
  for (size_t k = 0; k < after.size(); ++k) {
    all += after[k] - before[k];
    if (k + 1 < after.size()) idle += after[k] - before[k];
  }
  CHECK(idle <= all / 10);
}
#endif

TEST(TeamServesConcurrentCallers) {
  std::vector<std::thread> callers;
  for (int k = 0; k < 4; ++k) {
    callers.emplace_back([] {
      for (int round = 0; round < 100; ++round) RunCount(3);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// A call that has the team and one beside it, which wait for each other.
struct Neighbours {
  static constexpr int64_t kPhases = 20;
  std::atomic<bool> team_is_taken{false}, beside_began{false};
  std::atomic<bool> team_is_free{false};
  std::atomic<int> done_by_resting{0}, met{0};

  static int64_t OneItem(const void*, int64_t) { return 1; }
  static int64_t ManyItems(const void*, int64_t phase) {
    return phase == 0 ? 1 : 16;
  }
  static int64_t TwoItems(const void*, int64_t phase) {
    return phase == 0 ? 1 : 2;
  }

  template <class Condition>
  static bool Await(Condition condition) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  static void RunWithTeam(void* state, int64_t phase, int64_t, int thread) {
    auto& self = *static_cast<Neighbours*>(state);
    if (phase == 0) {
      self.team_is_taken = true;
      CHECK(Await([&] { return self.beside_began.load(); }));
    } else if (phase > 1 && thread > 0) {  // in phase 1 it may not know yet
      ++self.done_by_resting;
    }
  }

  static void RunBeside(void* state, int64_t phase, int64_t, int) {
    auto& self = *static_cast<Neighbours*>(state);
    if (phase == 0) {
      self.beside_began = true;
      CHECK(Await([&] { return self.team_is_free.load(); }));
    } else {
      ++self.met;
      CHECK(Await([&] { return self.met == 2; }));
    }
  }
};

TEST(TeamRestsForACallBesideAndServesItThen) {
  for (int round = 0; round < 20; ++round) {
    Neighbours state;
    std::thread with_team([&] {
      RunJob({&state, Neighbours::kPhases, &Neighbours::ManyItems,
              &Neighbours::RunWithTeam},
             2);
      state.team_is_free = true;
    });
    std::thread beside([&] {
      CHECK(Neighbours::Await([&] { return state.team_is_taken.load(); }));
      RunJob({&state, 2, &Neighbours::TwoItems, &Neighbours::RunBeside}, 2);
    });
    with_team.join();
    beside.join();
    CHECK_EQ(state.done_by_resting.load(), 0);
    CHECK_EQ(state.met.load(), 2);
  }
}

// As Neighbours, but the job beside has one phase. Its items are in any order.
struct OnePhase : Neighbours {
  static int64_t ThreeItems(const void*, int64_t) { return 3; }
  static void Run(void* state, int64_t, int64_t item, int) {
    RunBeside(state, item == 0 ? 0 : 1, item, 0);
  }
};

// A job that continues with the team after its first item.
void RunRestOfAPhase() {
  OnePhase state;
  std::thread with_team([&] {
    Neighbours* base = &state;
    RunJob({base, Neighbours::kPhases, &Neighbours::ManyItems,
            &Neighbours::RunWithTeam},
           2);
    state.team_is_free = true;
  });
  std::thread beside([&] {
    CHECK(Neighbours::Await([&] { return state.team_is_taken.load(); }));
    Neighbours* base = &state;
    RunJob({base, 1, &OnePhase::ThreeItems, &OnePhase::Run}, 2);
  });
  with_team.join();
  beside.join();
  CHECK_EQ(state.met.load(), 2);
}

TEST(TeamServesTheRestOfAPhase) {
  for (int round = 0; round < 20; ++round) RunRestOfAPhase();
}

// The numbers of phases begin again after 2^32 phases. Phases without items are
// counted too, but take little time.
TEST(TeamForgetsWhatWasDoneManyPhasesAgo) {
  RunRestOfAPhase();  // phase 22 of the process: its first item was done alone
  constexpr int64_t kUntilPhase12 = (int64_t{1} << 32) - 12;
  RunJob(
      {nullptr, kUntilPhase12, [](const void*, int64_t) { return int64_t{0}; },
       [](void*, int64_t, int64_t, int) {}},
      2);
  RunCount(2);
}

#if !defined(_WIN32)
TEST(TeamWorksAfterFork) {
  RunCount(3);
  const pid_t child = fork();
  if (child == 0) {
    RunCount(3);
    _exit(0);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  RunCount(3);
}
#endif

TEST(TeamTakesJobsWithoutPhases) {
  Count count;
  RunJob({&count, 0, &Count::Items, &Count::Run}, 3);
  RunCount(3);
}

}  // namespace
}  // namespace tf_lstm_ops
