#include "backends/cpu/team/thread_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "backends/cpu/memory/first_use.h"

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

// Threads whose ranges a thread searches for items as soon as its own range is
// empty. All are searched where the phase lasts longer. If each thread searched
// all ranges in each phase, the traffic between caches would grow with the
// square of the number of threads.
constexpr int kNearThreads = 4;

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
    SetThreads(StartWorkers(std::min(threads, kMaxThreads) - 1) + 1);
    const uint32_t next = Word::Phase(current_.load()) + 1;
    const uint32_t first = next - static_cast<uint32_t>(from);
    first_ = first;
    const uint32_t end = first + static_cast<uint32_t>(job.phases);
    // Also where it is 0. An older word would match again after 2^32 phases.
    done_before_ = Word::Make(next, done);
    Begin(next, done);
    for (;;) {
      const View view = Look();
      if (view.phase() == end) return;
      RunPhase(view, 0);
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

  // What a thread knows of the phase that runs. It is out of date as soon as
  // current_ differs from `current`.
  struct View {
    uint64_t current;
    uint64_t done_before;
    uint32_t first;
    int threads;

    uint32_t phase() const { return Word::Phase(current); }
    int64_t step() const { return phase() - first; }  // of the job
    int64_t items() const { return Word::Count(current); }
  };
  // threads_, first_ and done_before_ change while current_ is the end of a
  // job. If they are newer than `current`, current_ has changed too.
  View Look() const {
    const uint64_t current = current_.load();
    return {current, done_before_.load(), first_.load(), threads_.load()};
  }

  // The lock: a worker that reads the old number before it waits is notified.
  void SetThreads(int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (threads_.exchange(threads) < threads) returned_.notify_all();
  }

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
      RunPhase(Look(), index);
    }
  }

  // Runs items until none remains, and waits for the next phase. Returns before
  // that if the thread has to rest.
  void RunPhase(const View& view, int thread) {
    Work(view, thread, std::min(view.threads, kNearThreads));
    if (Rests(thread) || Spin(view.current)) return;
    Work(view, thread, view.threads);
    if (!Rests(thread)) WaitForPhaseAfter(view.current);
  }

  // Threads that the job does not use rest, so that they do not wake at each
  // phase, and the last ones that it uses, one for each concurrent call.
  bool Rests(int index) const {
    return index > 0 && index >= threads_ - resting_;
  }
  void WaitForReturn(int index) {
    if (!Rests(index)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    returned_.wait(lock, [&] { return !Rests(index); });
  }

  // Takes and runs items of `ranges` ranges, its own first, until none remains
  // or the thread has to rest. Thread 0 never rests.
  void Work(const View& view, int thread, int ranges) {
    if (thread >= view.threads) return;
    int64_t done = 0;
    for (int k = 0; k < ranges; ++k) {
      const int range = (thread + k) % view.threads;
      uint32_t left;
      while (!Rests(thread) && (left = Take(view, range)) > 0) {
        const int64_t item = view.step() % 2 == 0
                                 ? RangeBegin(view, range + 1) - left
                                 : RangeBegin(view, range) + left - 1;
        job_->run(job_->state, view.step(), item, thread);
        ++done;
      }
    }
    if (done > 0) Finish(view, done);
  }

  // Takes an item of a range. Returns the number of items that the range had
  // before, 0 if none. A thread that has taken an item may read the job, which
  // lives until the item is done.
  //
  // The first one to take an item of a range in a phase also begins the range,
  // so that the thread that begins a phase writes one word for all threads. A
  // word of an earlier phase is replaced only if the phase still ran after the
  // word was read: the word is then not of a later phase, and if the phase ends
  // in between, another thread has replaced it, or the range has no items.
  uint32_t Take(const View& view, int range) {
    std::atomic<uint64_t>& left = ranges_[range].left;
    uint64_t word = left.load(std::memory_order_acquire);
    for (;;) {
      uint32_t count = Word::Count(word);
      if (Word::Phase(word) != view.phase()) {
        if (current_.load() != view.current) return 0;
        count = Items(view, range);
      }
      if (count == 0) return 0;
      if (left.compare_exchange_weak(word, Word::Make(view.phase(), count - 1),
                                     std::memory_order_acq_rel)) {
        return count;
      }
    }
  }

  void Finish(const View& view, int64_t done) {
    const uint64_t before = done_.fetch_add(static_cast<uint64_t>(done));
    if (static_cast<int64_t>(Word::Count(before)) + done == view.items()) {
      Begin(view.phase() + 1);
    }
  }

  // Begins the first phase from `phase` on that has items, or the end of the
  // job. The first `done` items of `phase`, in the order of the phase, are
  // done.
  void Begin(uint32_t phase, int64_t done = 0) {
    int64_t step = phase - first_, items = 0;
    while (step < job_->phases &&
           (items = job_->items(job_->state, step)) == 0) {
      ++step;
    }
    phase = first_ + static_cast<uint32_t>(step);
    if (step == job_->phases) items = 0;
    assert(items >> 32 == 0);
    done_.store(Word::Make(phase, done), std::memory_order_relaxed);
    current_.store(Word::Make(phase, items));
    if (sleepers_.load() > 0) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
      }
      changed_.notify_all();
    }
  }

  // The items of a range at the begin of a phase.
  uint32_t Items(const View& view, int range) const {
    int64_t begin = RangeBegin(view, range);
    int64_t end = RangeBegin(view, range + 1);
    if (Word::Phase(view.done_before) == view.phase()) {
      const int64_t done = Word::Count(view.done_before);
      if (view.step() % 2 == 0) {
        begin = std::max(begin, done);
      } else {
        end = std::min(end, view.items() - done);
      }
    }
    return static_cast<uint32_t>(std::max<int64_t>(end - begin, 0));
  }

  static int64_t RangeBegin(const View& view, int range) {
    return view.items() * range / view.threads;
  }

  // Waits for a moment. Returns whether another phase runs.
  bool Spin(uint64_t current) const {
    for (int k = 0; k < kHintsPerClock; ++k) {
      if (current_.load() != current) return true;
      SpinHint();
    }
    return false;
  }

  void WaitForPhaseAfter(uint64_t current) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + kSpinTime; Clock::now() < end;) {
      if (Spin(current)) return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    changed_.wait(lock, [&] { return current_.load() != current; });
    sleepers_.fetch_sub(1);
  }

  // The job. It is written while no items remain. Threads that have taken an
  // item read it.
  const Job* job_ = nullptr;
  std::atomic<uint32_t> first_{0};
  std::atomic<int> threads_{1};
  std::atomic<uint64_t> done_before_{0};  // phase, items done before the job

  Range ranges_[kMaxThreads];
  // Waiting threads read current_. It is not in the cache line of done_, which
  // all threads write.
  alignas(64) std::atomic<uint64_t> current_{0};  // phase, its items
  alignas(64) std::atomic<uint64_t> done_{0};     // phase, items done
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> resting_{0};
  std::condition_variable returned_;
  int workers_ = 0;
};

// The team of the process. It is never freed, because its workers wait on its
// memory. A forked child has no workers and creates a new team.
FirstUse<Team> g_team;
std::atomic<bool> g_busy{false};

void ForgetTeamInChild() {
  g_team.Forget();
  g_busy.store(false);
}

// When the library is loaded, so that no fork comes before it.
[[maybe_unused]] const int kRegistered =
    pthread_atfork(nullptr, nullptr, &ForgetTeamInChild);

Team* TheTeam() {
  return &g_team.Get([] { return std::make_unique<Team>(); });
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
