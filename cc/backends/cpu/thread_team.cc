#include "backends/cpu/thread_team.h"

#include <pthread.h>

#include <system_error>
#include <thread>

namespace tf_lstm_ops {
namespace {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 50 microseconds: longer than a step's imbalance, shorter than a time
// slice of the scheduler.
constexpr int kSpins = 2000;

template <class Condition>
bool SpinUntil(const Condition& condition) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (condition()) return true;
    Pause();
  }
  return condition();
}

// Work that the workers wait for.
class Team {
 public:
  using Body = void (*)(void*, const Member&);

  void Run(int threads, Body body, void* argument) {
    threads = StartWorkers(threads - 1) + 1;
    Barrier barrier(threads);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      body_ = body;
      argument_ = argument;
      threads_ = threads;
      barrier_ = &barrier;
      running_.store(threads - 1, std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_release);
    }
    started_.notify_all();
    body(argument, Member(0, threads, &barrier));
    const auto done = [this] {
      return running_.load(std::memory_order_acquire) == 0;
    };
    if (!SpinUntil(done)) {
      std::unique_lock<std::mutex> lock(mutex_);
      finished_.wait(lock, done);
    }
  }

 private:
  // Returns how many of `wanted` workers there are; fewer than wanted where the
  // system gives no more threads.
  int StartWorkers(int wanted) {
    try {
      for (; workers_ < wanted; ++workers_) {
        const int index = workers_ + 1;
        const uint32_t seen = round_.load();
        std::thread([this, index, seen] { Work(index, seen); }).detach();
      }
    } catch (const std::system_error&) {
      return workers_;
    }
    return wanted;
  }

  // A worker of index `threads_` or more has no part in a round.
  void Work(int index, uint32_t seen) {
    for (;;) {
      const auto called = [&] {
        return round_.load(std::memory_order_acquire) != seen;
      };
      SpinUntil(called);
      Body body;
      void* argument;
      int threads;
      Barrier* barrier;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        started_.wait(lock, called);
        seen = round_.load(std::memory_order_relaxed);
        body = body_;
        argument = argument_;
        threads = threads_;
        barrier = barrier_;
      }
      if (index >= threads) continue;
      body(argument, Member(index, threads, barrier));
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard<std::mutex> lock(mutex_);
        finished_.notify_one();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable finished_;
  std::atomic<uint32_t> round_{0};
  std::atomic<int> running_{0};
  Body body_ = nullptr;
  void* argument_ = nullptr;
  int threads_ = 0;
  Barrier* barrier_ = nullptr;
  int workers_ = 0;
};

// The process's team. Workers outlive every call and wait on the team's own
// memory, so it is never freed; a forked child, which has no workers, begins
// with a new one.
std::atomic<Team*> g_team{nullptr};
std::atomic<bool> g_busy{false};

void ForgetTeamInChild() {
  g_team.store(nullptr);
  g_busy.store(false);
}

Team* TheTeam() {
  Team* team = g_team.load();
  if (team == nullptr) {
    static const int registered =
        pthread_atfork(nullptr, nullptr, &ForgetTeamInChild);
    (void)registered;
    team = new Team();
    g_team.store(team);
  }
  return team;
}

}  // namespace

void Barrier::Wait() {
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (waiting_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    waiting_.store(members_, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      round_.store(round + 1, std::memory_order_release);
    }
    changed_.notify_all();
    return;
  }
  const auto passed = [&] {
    return round_.load(std::memory_order_acquire) != round;
  };
  if (!SpinUntil(passed)) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, passed);
  }
}

void RunTeam(int threads, void (*body)(void*, const Member&), void* argument) {
  if (threads > 1 && !g_busy.exchange(true)) {
    TheTeam()->Run(threads, body, argument);
    g_busy.store(false);
    return;
  }
  Barrier barrier(1);
  body(argument, Member(0, 1, &barrier));
}

}  // namespace tf_lstm_ops
