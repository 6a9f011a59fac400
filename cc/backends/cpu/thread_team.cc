#include "backends/cpu/thread_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace tf_lstm_ops {
namespace {

// Lets the other thread of the core run while this one waits in a loop.
inline void SpinHint() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A thread spins for this time before it sleeps. Within a phase, the threads'
// times differ by less. A time slice of the operating system is longer. It is
// a time because the hint takes 5 to 140 cycles, depending on the processor.
constexpr std::chrono::microseconds kSpinTime(25);
// Reading the clock takes about as long as one hint. The hints before the first
// reading take longer than a wait within a step of few rows.
constexpr int kHintsPerClock = 64;

// A phase's number and a count in one word, so that both change together. The
// numbers continue across all jobs of the process. A word that a thread read
// long ago therefore never matches a later phase, up to 2^32 phases.
struct Word {
  static uint64_t Make(uint32_t phase, int64_t count) {
    return static_cast<uint64_t>(phase) << 32 | static_cast<uint32_t>(count);
  }
  static uint32_t Phase(uint64_t word) {
    return static_cast<uint32_t>(word >> 32);
  }
  static uint32_t Count(uint64_t word) { return static_cast<uint32_t>(word); }
};

class Team {
 public:
  // Runs the job from phase `from` on, whose first `done` items are done.
  void Run(const Job& job, int threads, int64_t from, int64_t done) {
    job_ = &job;
    threads_ = StartWorkers(std::min(threads, kMaxThreads) - 1) + 1;
    const uint32_t next = Word::Phase(progress_.load()) + 1;
    const uint32_t first = next - static_cast<uint32_t>(from);
    first_ = first;
    const uint32_t end = first + static_cast<uint32_t>(job.phases);
    Begin(next, done);
    for (;;) {
      const uint32_t phase = Word::Phase(progress_.load());
      if (phase == end) return;
      Work(phase, 0);
      WaitForPhaseAfter(phase);
    }
  }

  // Begin and end of a call that runs while another call uses the team. Between
  // them, one thread of the team rests.
  void Rest() { resting_.fetch_add(1); }
  void Return() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      resting_.fetch_sub(1);
    }
    returned_.notify_all();
  }

 private:
  struct alignas(64) Range {
    std::atomic<uint64_t> left{0};  // phase, remaining items
  };

  // Returns the number of workers, at most `wanted`. There are fewer where the
  // system creates no more threads.
  int StartWorkers(int wanted) {
    try {
      for (; workers_ < wanted; ++workers_) {
        const int index = workers_ + 1;
        std::thread worker([this, index] { Serve(index); });
#if defined(__linux__)
        // Tools that list a process's threads show this name.
        pthread_setname_np(worker.native_handle(), "tf_lstm_ops");
#endif
        worker.detach();
      }
    } catch (const std::system_error&) {
      return workers_;
    }
    return wanted;
  }

  [[noreturn]] void Serve(int index) {
    for (;;) {
      WaitForReturn(index);
      const uint32_t phase = Word::Phase(progress_.load());
      // If the range was not set for this phase, the thread has no items in
      // this job.
      if (Word::Phase(ranges_[index].left.load()) == phase) Work(phase, index);
      if (!Rests(index)) WaitForPhaseAfter(phase);
    }
  }

  // The last threads of the team rest, one for each concurrent call.
  bool Rests(int index) const {
    const int resting = resting_;
    return index > 0 && resting > 0 && index >= threads_ - resting;
  }
  void WaitForReturn(int index) {
    if (!Rests(index)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    returned_.wait(lock, [&] { return !Rests(index); });
  }

  // Takes and runs items of the phase until none remains or the thread has to
  // rest. Thread 0 never rests.
  void Work(uint32_t phase, int thread) {
    int64_t done = 0;
    const int threads = threads_;  // constant while items remain
    for (int k = 0; k < threads; ++k) {
      const int range = (thread + k) % threads;
      uint32_t left;
      while (!Rests(thread) && (left = Take(phase, range)) > 0) {
        const int64_t step = phase - first_;
        const int64_t item = step % 2 == 0 ? RangeBegin(step, range + 1) - left
                                           : RangeBegin(step, range) + left - 1;
        job_->run(job_->state, step, item, thread);
        ++done;
      }
    }
    if (done > 0) Finish(phase, done);
  }

  // Takes an item of a range. Returns the number of items that the range had
  // before, 0 if none. A thread that has taken an item may read the job, which
  // lives until the item is done.
  uint32_t Take(uint32_t phase, int range) {
    std::atomic<uint64_t>& left = ranges_[range].left;
    uint64_t word = left.load(std::memory_order_acquire);
    while (Word::Phase(word) == phase && Word::Count(word) > 0) {
      if (left.compare_exchange_weak(word, word - 1,
                                     std::memory_order_acq_rel)) {
        return Word::Count(word);
      }
    }
    return 0;
  }

  void Finish(uint32_t phase, int64_t done) {
    const int64_t items = job_->items(job_->state, phase - first_);
    const uint64_t before = progress_.fetch_add(static_cast<uint64_t>(done));
    if (static_cast<int64_t>(Word::Count(before)) + done == items) {
      Begin(phase + 1);
    }
  }

  // Begins the first phase from `phase` on that has items. The first `done`
  // items of `phase`, in the order of the phase, are done.
  void Begin(uint32_t phase, int64_t done = 0) {
    int64_t step = phase - first_;
    while (step < job_->phases && job_->items(job_->state, step) == 0) {
      ++step;
    }
    phase = first_ + static_cast<uint32_t>(step);
    for (int r = 0; r < threads_; ++r) {
      const int64_t count = step == job_->phases ? 0 : Left(step, r, done);
      ranges_[r].left.store(Word::Make(phase, count),
                            std::memory_order_release);
    }
    progress_.store(Word::Make(phase, done));
    if (sleepers_.load() > 0) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
      }
      changed_.notify_all();
    }
  }

  // The items of a range that are left after the first `done` items of a phase.
  int64_t Left(int64_t step, int range, int64_t done) const {
    int64_t begin = RangeBegin(step, range);
    int64_t end = RangeBegin(step, range + 1);
    if (step % 2 == 0) {
      begin = std::max(begin, done);
    } else {
      end = std::min(end, job_->items(job_->state, step) - done);
    }
    return std::max<int64_t>(end - begin, 0);
  }

  int64_t RangeBegin(int64_t step, int range) const {
    return job_->items(job_->state, step) * range / threads_;
  }

  void WaitForPhaseAfter(uint32_t phase) {
    const auto changed = [&] { return Word::Phase(progress_.load()) != phase; };
    const auto spin = [&] {
      for (int k = 0; k < kHintsPerClock; ++k) {
        if (changed()) return true;
        SpinHint();
      }
      return false;
    };
    if (spin()) return;  // most waits are short and need no clock
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + kSpinTime; Clock::now() < end;) {
      if (spin()) return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    changed_.wait(lock, changed);
    sleepers_.fetch_sub(1);
  }

  // The job. It is written while no items remain. Threads that have taken an
  // item read it.
  const Job* job_ = nullptr;
  std::atomic<int> threads_{1};
  std::atomic<uint32_t> first_{0};

  Range ranges_[kMaxThreads];
  alignas(64) std::atomic<uint64_t> progress_{0};  // phase, items done
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> resting_{0};
  std::condition_variable returned_;
  int workers_ = 0;
};

// The team of the process. It is never freed, because its workers wait on its
// memory. A forked child has no workers and creates a new team.
std::atomic<Team*> g_team{nullptr};
std::atomic<bool> g_busy{false};

void ForgetTeamInChild() {
  g_team.store(nullptr);
  g_busy.store(false);
}

Team* TheTeam() {
  Team* team = g_team.load();
  if (team == nullptr) {
    [[maybe_unused]] static const int registered =
        pthread_atfork(nullptr, nullptr, &ForgetTeamInChild);
    // Two calls may create a team at the same time. One of the teams stays.
    auto created = std::make_unique<Team>();
    if (g_team.compare_exchange_strong(team, created.get())) {
      team = created.release();
    }
  }
  return team;
}

bool TakeTeam() { return !g_busy.load() && !g_busy.exchange(true); }

// Gives the team back, also if the first team cannot be created.
struct GivesBack {
  ~GivesBack() { g_busy.store(false); }
};

// Runs items of a phase on the calling thread until all are done or stop()
// returns true. Returns the number of items done.
template <class Stop>
int64_t RunPhaseAlone(const Job& job, int64_t phase, const Stop& stop) {
  const int64_t items = job.items(job.state, phase);
  int64_t done = 0;
  while (done < items && !stop()) {
    job.run(job.state, phase, phase % 2 == 0 ? done : items - 1 - done, 0);
    ++done;
  }
  return done;
}

// Jobs side by side.
struct Together {
  const Job* jobs;
  int count;

  int64_t ItemsOf(int k, int64_t phase) const {
    return phase < jobs[k].phases ? jobs[k].items(jobs[k].state, phase) : 0;
  }
  int64_t Items(int64_t phase) const {
    int64_t items = 0;
    for (int k = 0; k < count; ++k) items += ItemsOf(k, phase);
    return items;
  }
  void Run(int64_t phase, int64_t item, int thread) const {
    int k = 0;
    for (; item >= ItemsOf(k, phase); ++k) item -= ItemsOf(k, phase);
    jobs[k].run(jobs[k].state, phase, item, thread);
  }
};

}  // namespace

void RunJobs(const Job* jobs, int count, int threads) {
  if (count == 1) return RunJob(*jobs, threads);
  Together all = {jobs, count};
  Job job = {&all, 0,
             [](const void* state, int64_t phase) {
               return static_cast<const Together*>(state)->Items(phase);
             },
             [](void* state, int64_t phase, int64_t item, int thread) {
               static_cast<const Together*>(state)->Run(phase, item, thread);
             }};
  for (int k = 0; k < count; ++k) {
    job.phases = std::max(job.phases, jobs[k].phases);
  }
  RunJob(job, threads);
}

void RunJob(const Job& job, int threads) {
  bool with_team = threads > 1 && TakeTeam();
  const bool beside_team = threads > 1 && !with_team;
  int64_t phase = 0, done = 0;
  const auto takes_team = [&] {
    return with_team || (with_team = beside_team && TakeTeam());
  };
  if (beside_team) TheTeam()->Rest();
  while (phase < job.phases && !takes_team()) {
    done = RunPhaseAlone(job, phase, takes_team);
    if (done == job.items(job.state, phase)) {
      done = 0;
      ++phase;
    }
  }
  if (beside_team) TheTeam()->Return();
  if (!with_team) return;
  const GivesBack gives_back;
  TheTeam()->Run(job, threads, phase, done);
}

}  // namespace tf_lstm_ops
