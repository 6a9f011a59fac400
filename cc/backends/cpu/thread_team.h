// ThreadTeam: the threads that compute one sequence together.
//
// A job is a series of phases, such as the steps of a sequence. A phase is a
// number of items, such as groups of hidden units, that any thread may run. The
// next phase begins when all items of the phase are done. Each thread owns a
// range of items, so that its weights stay in its cache. A thread that has
// finished its own items takes items of other threads, so a descheduled thread
// delays nobody, and a caller whose team does not wake up runs all items
// itself. The result of an item does not depend on the thread that runs it.
//
// Threads run through their ranges in serpentine order: upwards in even phases,
// downwards in odd ones. A phase begins with the items that the preceding phase
// used last, whose data are in the cache.
//
// The package has its own team because a recurrent step takes microseconds,
// less than scheduling a task in TensorFlow's thread pool. Waiting inside that
// pool for a task that has not started can deadlock.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_

#include <cstdint>

namespace tf_lstm_ops {

struct Job {
  void* state;
  int64_t phases;
  // Number of items of a phase, less than 2^32.
  int64_t (*items)(const void* state, int64_t phase);
  // Must not throw. 0 <= thread < the number of threads of RunJob.
  void (*run)(void* state, int64_t phase, int64_t item, int thread);
};

// Runs the job on up to `threads` threads, including the calling thread. The
// first call that needs threads starts them. While another call uses the team,
// the job runs on the calling thread alone and one thread of the team pauses, so
// that the number of running threads stays the same. When the other call ends
// first, the job takes over the team.
void RunJob(const Job& job, int threads);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_
