// ThreadTeam: the threads that work on one sequence together.
//
// A job is a series of phases, such as the steps of a sequence; a phase is a
// number of items, such as slices of the hidden units, that any thread may do.
// The next phase begins when all items of the last are done. Each thread has a
// range of items of its own, so that its weights stay in its cache, and takes
// others' when its own are gone: a thread that the system has put aside holds
// up nobody, and a caller whose team does not wake up does all by itself. What
// an item computes does not depend on who does it.
//
// Ranges are gone through to and fro, upwards in even phases: a phase begins
// with what the last one used last, which is in the cache.
//
// The team is the package's own: a recurrent step lasts microseconds, less than
// handing tasks to TensorFlow's pool, and waiting inside that pool for a task
// that it has not started can go on for ever.
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

// Runs the job on up to `threads` threads, the caller's own among them. Threads
// are started when first needed; none is at load time. While another call has
// the team, the job runs on the caller's thread alone, and the team rests one
// of its own for it: as many threads work as before. When the other call ends
// first, the job gets the team for what is left of it.
void RunJob(const Job& job, int threads);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_THREAD_TEAM_H_
