// ThreadTeam: the threads that work on one sequence together.
//
// A recurrent step lasts microseconds, so members meet at a barrier that spins
// for a bounded time before it sleeps; a pool that hands out each step as a
// task would cost more than the step. The team is the package's own: a barrier
// on TensorFlow's pool could wait for a member that is never scheduled.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tf_lstm_ops {

// Lets a fixed number of threads wait for each other, again and again.
class Barrier {
 public:
  explicit Barrier(int members) : members_(members), waiting_(members) {}
  void Wait();

 private:
  const int members_;
  std::atomic<int> waiting_;
  std::atomic<uint32_t> round_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// One thread's place in the team during a call.
class Member {
 public:
  Member(int index, int count, Barrier* barrier)
      : index_(index), count_(count), barrier_(barrier) {}
  int index() const { return index_; }
  int count() const { return count_; }
  // Returns when all members have called it.
  void Wait() const {
    if (count_ > 1) barrier_->Wait();
  }

  struct Range {
    int64_t begin, end;
  };
  // This member's share of [0, n), cut at multiples of `unit`.
  Range Share(int64_t n, int64_t unit) const {
    const int64_t units = (n + unit - 1) / unit;
    const auto cut = [&](int64_t k) {
      const int64_t at = units * k / count_ * unit;
      return at < n ? at : n;
    };
    return {cut(index_), cut(index_ + 1)};
  }

 private:
  int index_;
  int count_;
  Barrier* barrier_;
};

// Calls body(argument, member) on up to `threads` threads, the caller's own
// among them, and returns when all are done. Threads are started when first
// needed. While another call has the team, and in a member of a running team,
// the body runs on the caller's thread alone. The body must not throw.
void RunTeam(int threads, void (*body)(void* argument, const Member& member),
             void* argument);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_
