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

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

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

// The arrays of a call: their shapes are those of a batch and of some steps.
struct Shapes {
  int64_t batch, steps;
  std::vector<tf_lstm_ops_array> inputs, outputs;
};

// A session with arrays that are large enough for all calls.
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
    for (int64_t steps : kSteps) sequences_.push_back(Prepare(batch, steps));
    for (int64_t rows : {int64_t{1}, int64_t{2}, batch_ / 2, batch_}) {
      for (int64_t steps : {1, 2, 7, 50, 99}) {
        smaller_.push_back(Prepare(rows, steps));
      }
    }
    Allocate();
  }

  // Opens a stream. Its first call need not be a warm-up.
  void OpenStream() {
    Check(tf_lstm_ops_stream_open(session_, batch_, &stream_, &error_), error_);
  }

  void Stream() {
    for (const Shapes& call : sequences_) {
      Check(tf_lstm_ops_stream_run_arrays(stream_, call.inputs.data(),
                                          info_.input_count, Outputs(call),
                                          info_.output_count, &error_),
            error_);
      if (!is_simple()) continue;
      const int64_t rows =
          info_.returns_sequence ? batch_ * call.steps : batch_;
      Check(tf_lstm_ops_stream_run(stream_, call.steps, x_[0].data(),
                                   batch_ * call.steps * info_.input_size,
                                   y_[0].data(), rows * info_.output_size,
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
    for (Shapes& call : sequences_) {
      for (tf_lstm_ops_array& input : call.inputs) {
        input.mask = is_masked ? mask_.data() : nullptr;
      }
      Run(call);
    }
  }

  void Largest() { Run(sequences_[2]); }

  // Some are computed in other ways than the largest call.
  void Smaller() {
    for (const Shapes& call : smaller_) Run(call);
  }

 private:
  // Whether the calls of one input and one output are possible.
  bool is_simple() const {
    return info_.input_count == 1 && info_.output_count == 1 &&
           sequences_[0].inputs[0].type == TF_LSTM_OPS_FLOAT32;
  }

  static int64_t Elements(const tf_lstm_ops_array& array) {
    int64_t count = 1;
    for (int k = 0; k < array.rank; ++k) count *= array.shape[k];
    return count;
  }

  Shapes Prepare(int64_t batch, int64_t steps) {
    tf_lstm_ops_array array = {};
    array.struct_size = sizeof(array);
    Shapes call = {batch, steps, {}, {}};
    call.inputs.resize(info_.input_count, array);
    call.outputs.resize(info_.output_count, array);
    for (int32_t k = 0; k < info_.input_count; ++k) {
      tf_lstm_ops_array& input = call.inputs[k];
      Check(
          tf_lstm_ops_session_get_input(session_, k, &input, nullptr, &error_),
          error_);
      input.shape[0] = batch;
      if (input.shape[1] < 0) input.shape[1] = steps;
    }
    Check(tf_lstm_ops_session_infer_shapes(
              session_, call.inputs.data(), info_.input_count,
              call.outputs.data(), info_.output_count, &error_),
          error_);
    return call;
  }

  void Allocate() {
    const Shapes& largest = sequences_[2];
    for (const tf_lstm_ops_array& input : largest.inputs) {
      std::vector<float>& x = x_.emplace_back(Elements(input));
      for (size_t k = 0; k < x.size(); ++k) x[k] = (k * 7 % 13) / 13.0F;
      // The bytes of zeros are valid indices.
      if (input.type == TF_LSTM_OPS_INT32) x.assign(x.size(), 0.0F);
    }
    for (const tf_lstm_ops_array& output : largest.outputs) {
      y_.emplace_back(Elements(output));
    }
    mask_.resize(batch_ * std::max(kSteps[2], largest.inputs[0].shape[1]));
    for (std::vector<Shapes>* calls : {&sequences_, &smaller_}) {
      for (Shapes& call : *calls) {
        for (size_t k = 0; k < x_.size(); ++k)
          call.inputs[k].data = x_[k].data();
        for (size_t k = 0; k < y_.size(); ++k)
          call.outputs[k].data = y_[k].data();
      }
    }
  }

  // Calls do not write to the structs of outputs.
  static tf_lstm_ops_array* Outputs(const Shapes& call) {
    return const_cast<tf_lstm_ops_array*>(call.outputs.data());
  }

  void Run(const Shapes& call) {
    Check(tf_lstm_ops_session_run_arrays(session_, call.inputs.data(),
                                         info_.input_count, Outputs(call),
                                         info_.output_count, &error_),
          error_);
  }

  const int64_t batch_;
  tf_lstm_ops_session* session_ = nullptr;
  tf_lstm_ops_stream* stream_ = nullptr;
  tf_lstm_ops_session_info info_ = {};
  tf_lstm_ops_error error_ = {};
  std::vector<Shapes> sequences_, smaller_;
  std::vector<std::vector<float>> x_, y_;
  std::vector<float> states_;
  std::vector<uint8_t> mask_;
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
