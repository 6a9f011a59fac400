// Measures what the thread team takes beside the items of a job.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_PHASES_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_PHASES_H_

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/team/thread_team.h"
#include "timing.h"

namespace engine_benchmark {

// A job whose items only multiply and add.
class SpinJob {
 public:
  // `rounds` of an item's loop; 0 for items without work.
  SpinJob(int64_t phases, int64_t items, int64_t rounds)
      : items_(items), rounds_(rounds) {
    job_.state = this;
    job_.phases = phases;
    job_.items = [](const void* job, int64_t) {
      return static_cast<const SpinJob*>(job)->items_;
    };
    job_.run = [](void* job, int64_t, int64_t, int) {
      static_cast<const SpinJob*>(job)->RunItem();
    };
  }

  void Run(int threads) const { tf_lstm_ops::RunJob(job_, threads); }

  // Nanoseconds of a phase, of the fastest job.
  double PhaseTime(int threads) const {
    return Fastest([&] { Run(threads); }, 0.1) * 1e9 /
           static_cast<double>(job_.phases);
  }

 private:
  void RunItem() const {
    if (rounds_ == 0) return;
    int64_t flops = 0;
    volatile float sink =
        tf_lstm_ops::SelectedInstructionSet().engine->multiply_add(rounds_,
                                                                   &flops);
    (void)sink;
  }

  const int64_t items_, rounds_;
  tf_lstm_ops::Job job_ = {};
};

// The time of handing out an item to one of `threads` threads: what a phase
// takes longer with more items that do nothing.
inline double ItemTime(int threads) {
  constexpr int64_t kPhases = 1000, kMore = 64;
  const SpinJob few(kPhases, threads, 0);
  const SpinJob many(kPhases, (1 + kMore) * threads, 0);
  return (many.PhaseTime(threads) - few.PhaseTime(threads)) / kMore;
}

// The time of ending a phase, for each of `threads` threads that have one item:
// what a phase takes longer than the same items on one thread, by its share.
inline double ThreadTime(int threads) {
  const SpinJob job(2000, threads, 25);
  return (job.PhaseTime(threads) - job.PhaseTime(1) / threads) / threads;
}

// The time of waking sleeping threads: the median of what a job takes longer
// than its share of the time on one thread.
inline double WakeTime(int threads) {
  using Clock = std::chrono::steady_clock;
  constexpr int kJobs = 31;
  const SpinJob job(1, threads, 4000);
  const double share = job.PhaseTime(1) / threads;
  std::vector<double> times;
  for (int k = 0; k < kJobs; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto begin = Clock::now();
    job.Run(threads);
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    times.push_back(time.count() - share);
  }
  std::nth_element(times.begin(), times.begin() + kJobs / 2, times.end());
  return times[kJobs / 2];
}

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_PHASES_H_
