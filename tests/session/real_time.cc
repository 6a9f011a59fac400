// Counts what calls of the library allocate and lock, and what they ask of the
// system.
//
//   real_time FILE THREADS BATCH CALLS MODE
//
// CALLS: "stream" runs blocks of steps, "states" resets, gets and sets states,
// "sequence" computes whole sequences, "masked" those with masks, "smaller"
// those of fewer rows or steps than the first call. MODE: "count"
// prints the numbers of allocations and of locks, of all threads. "strict" lets
// the kernel kill the process at the first system call.
//
// This program defines the functions that allocate and lock, and the library
// calls them instead of those of the C runtime.

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "call_arrays.h"
#include "tf_lstm_ops.h"

namespace {

std::atomic<bool> g_counts{false};
std::atomic<int64_t> g_allocations{0}, g_frees{0}, g_locks{0};

void Count(std::atomic<int64_t>* counter) {
  if (g_counts.load(std::memory_order_relaxed)) ++*counter;
}

// The C runtime's function of this name.
template <class F>
F* Next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// The names of glibc's own functions.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t size) {
  Count(&g_allocations);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count(&g_allocations);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  Count(&g_allocations);
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  Count(&g_allocations);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) {
  Count(&g_frees);
  __libc_free(memory);
}

// Of the threads in <pthread.h> and <semaphore.h>.
#define COUNT_LOCK(name, type)                        \
  int name(type* lock) {                              \
    static const auto next = Next<int(type*)>(#name); \
    Count(&g_locks);                                  \
    return next(lock);                                \
  }
COUNT_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNT_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNT_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNT_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNT_LOCK(pthread_cond_signal, pthread_cond_t)
COUNT_LOCK(pthread_cond_broadcast, pthread_cond_t)
COUNT_LOCK(sem_wait, sem_t)
COUNT_LOCK(sem_post, sem_t)
#undef COUNT_LOCK

}  // extern "C"

namespace {

constexpr int64_t kSteps[] = {1, 7, 100};
constexpr int kRepeats = 20;

void Check(int32_t code, const tf_lstm_ops_error& error) {
  if (code == TF_LSTM_OPS_OK) return;
  std::fprintf(stderr, "error %d: %s\n", code, error.text);
  std::_Exit(1);
}

// A session with arrays for all calls.
class Calls {
 public:
  Calls(const char* path, int threads, int64_t batch) : batch_(batch) {
    error_.struct_size = sizeof(error_);
    info_.struct_size = sizeof(info_);
    tf_lstm_ops_session_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    Check(tf_lstm_ops_session_open(path, &options, &session_, &error_), error_);
    Check(tf_lstm_ops_session_get_info(session_, &info_, &error_), error_);
    states_.resize(batch * info_.state_size);
    for (int64_t steps : kSteps) Add(batch, steps, &sequences_);
    for (int64_t rows : {int64_t{1}, int64_t{2}, batch_ / 2, batch_}) {
      for (int64_t steps : {1, 2, 7, 50, 99}) Add(rows, steps, &smaller_);
    }
  }

  // Opens a stream. Its first call need not be a warm-up.
  void OpenStream() {
    Check(tf_lstm_ops_stream_open(session_, batch_, &stream_, &error_), error_);
  }

  void Stream() {
    for (CallArrays& call : sequences_) {
      Check(call.Run(stream_, &error_), error_);
      if (!call.is_simple()) continue;
      Check(tf_lstm_ops_stream_run(stream_, call.steps(), call.x(),
                                   call.x_count(), call.y(), call.y_count(),
                                   &error_),
            error_);
    }
  }

  void States() {
    const int64_t last = batch_ - 1, size = states_.size();
    Check(tf_lstm_ops_stream_get_state(stream_, states_.data(), size, &error_),
          error_);
    Check(tf_lstm_ops_stream_reset(stream_, &last, 1, &error_), error_);
    Check(tf_lstm_ops_stream_set_state(stream_, states_.data(), size, &error_),
          error_);
    Check(tf_lstm_ops_stream_reset(stream_, nullptr, 0, &error_), error_);
  }

  void Sequence(bool is_masked) {
    for (CallArrays& call : sequences_) Run(&call, is_masked);
  }

  void Largest() { Run(&sequences_[2], false); }

  // Some are computed in other ways than the largest call.
  void Smaller() {
    for (CallArrays& call : smaller_) Run(&call, false);
  }

 private:
  void Add(int64_t batch, int64_t steps, std::vector<CallArrays>* calls) {
    int32_t code;
    calls->emplace_back(session_, info_, batch, steps, &code);
    Check(code, error_);
  }

  void Run(CallArrays* call, bool is_masked) {
    Check(call->Run(session_, is_masked, &error_), error_);
  }

  const int64_t batch_;
  tf_lstm_ops_session* session_ = nullptr;
  tf_lstm_ops_stream* stream_ = nullptr;
  tf_lstm_ops_session_info info_ = {};
  tf_lstm_ops_error error_ = {};
  std::vector<CallArrays> sequences_, smaller_;
  std::vector<float> states_;
};

// Runs the calls until the kernel ends the process or all are done.
template <class F>
[[noreturn]] void RunStrictly(const F& run) {
  constexpr char kDone[] = "no system call\n";
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
    std::fprintf(stderr, "seccomp: %s\n", std::strerror(errno));
    std::_Exit(3);
  }
  for (int k = 0; k < kRepeats; ++k) run();
  // Strict mode allows write and exit, but not exit_group.
  const ssize_t written = write(STDOUT_FILENO, kDone, sizeof(kDone) - 1);
  for (;;) syscall(SYS_exit, written > 0 ? 0 : 1);
}

template <class F>
void RunCounted(const F& run) {
  g_counts = true;
  for (int k = 0; k < kRepeats; ++k) run();
  g_counts = false;
  std::printf("%lld %lld %lld\n", static_cast<long long>(g_allocations),
              static_cast<long long>(g_frees), static_cast<long long>(g_locks));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: real_time FILE THREADS BATCH CALLS MODE\n");
    return 2;
  }
  Calls calls(argv[1], std::atoi(argv[2]), std::atoll(argv[3]));
  const std::string wanted = argv[4], mode = argv[5];
  const auto run = [&] {
    if (wanted == "stream") {
      calls.Stream();
    } else if (wanted == "states") {
      calls.States();
    } else if (wanted == "sequence" || wanted == "masked") {
      calls.Sequence(wanted == "masked");
    } else if (wanted == "smaller") {
      calls.Smaller();
    } else if (wanted == "malloc") {  // these three show what is noticed
      std::free(std::malloc(100));
    } else if (wanted == "mutex") {
      static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    } else if (wanted == "getppid") {
      getppid();
    } else {
      std::fprintf(stderr, "unknown calls %s\n", wanted.c_str());
      std::_Exit(2);
    }
  };
  if (wanted == "stream" || wanted == "states") {
    calls.OpenStream();
  } else if (wanted == "smaller") {
    calls.Largest();
  } else {
    run();  // the first call allocates
  }
  if (mode == "strict") RunStrictly(run);
  RunCounted(run);
  return 0;
}
