// Runs jobs on the threads of a team; see README.md.
//
// A job is a series of phases, such as the steps of a sequence. A phase is a
// set of items, such as groups of hidden units. The next phase begins when all
// items of the phase are done. The result of an item must not depend on the
// thread that runs it.
//
// Threads process their items in serpentine order: upwards in even phases,
// downwards in odd phases. A phase begins with the items that the preceding
// phase used last, whose data are in the cache.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_TEAM_THREAD_TEAM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_TEAM_THREAD_TEAM_H_

#include <cstdint>

namespace tf_lstm_ops {

// The most threads of a job. No machine that was measured has more cores, and
// scratch memory grows with the number.
constexpr int kMaxThreads = 256;

// A job. The caller owns `state`, which is passed to both functions.
struct Job {
  void* state;
  int64_t phases;
  // Number of items of a phase, less than 2^32.
  int64_t (*items)(const void* state, int64_t phase);
  // Runs an item. It must not throw. `thread` is at least 0 and less than the
  // `threads` of RunJob.
  void (*run)(void* state, int64_t phase, int64_t item, int thread);
};

// Runs the job on up to `threads` threads, including the calling thread, and
// returns when it is done. The first call that needs threads starts them. While
// another call uses the team, the job runs on the calling thread alone.
void RunJob(const Job& job, int threads);

// Runs run(item, thread) for each item of a job with one phase.
template <class F>
void RunItems(int64_t count, int threads, const F& run) {
  struct Items {
    int64_t count;
    const F& run;
  } items = {count, run};
  RunJob({&items, 1,
          [](const void* state, int64_t) {
            return static_cast<const Items*>(state)->count;
          },
          [](void* state, int64_t, int64_t item, int thread) {
            static_cast<const Items*>(state)->run(item, thread);
          }},
         threads);
}

// Runs jobs side by side, as one job: a phase has the items of all of them.
void RunJobs(const Job* jobs, int count, int threads);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_TEAM_THREAD_TEAM_H_
