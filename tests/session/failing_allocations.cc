// Lets one allocation after another fail while a session is opened and used.
//
//   failing_allocations FILE THREADS
//
// A call must report RESOURCE_EXHAUSTED or succeed. After a failure all objects
// that it left must work, and what it allocated must be free again. Prints how
// many allocations failed.
//
// The library keeps up to kKept blocks for later. So each allocation fails more
// often.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "call_arrays.h"
#include "tf_lstm_ops.h"

namespace {

// The allocation that fails; the first is 1. None fails while it is 0.
std::atomic<int64_t> g_fails{0}, g_allocations{0};
std::atomic<int64_t> g_live{0};  // allocations that are not free

void* Counted(void* memory) {
  if (memory) ++g_live;
  return memory;
}

bool Fails() {
  const int64_t wanted = g_fails.load(std::memory_order_relaxed);
  if (wanted == 0) return false;
  if (++g_allocations != wanted) return false;
  errno = ENOMEM;
  return true;
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
  return Fails() ? nullptr : Counted(__libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return Fails() ? nullptr : Counted(__libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  if (Fails()) return nullptr;
  if (memory) --g_live;
  return Counted(__libc_realloc(memory, size));
}
void* memalign(size_t alignment, size_t size) {
  return Fails() ? nullptr : Counted(__libc_memalign(alignment, size));
}
void free(void* memory) {
  if (memory) --g_live;
  __libc_free(memory);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}

}  // extern "C"

namespace {

constexpr int64_t kBatch = 2, kSteps = 40;
constexpr int kKept = 16;  // the spares in aligned_buffer.cc
constexpr int kTimes = kKept + 4;

// Returns whether a call succeeded.
bool Succeeded(int32_t code) {
  if (code == TF_LSTM_OPS_OK) return true;
  if (code == TF_LSTM_OPS_RESOURCE_EXHAUSTED) return false;
  std::fprintf(stderr, "a call failed: %s\n", tf_lstm_ops_code_text(code));
  std::_Exit(1);
}

// The outputs of a call without a failure, and of a stream.
struct Wanted {
  std::vector<std::vector<float>> session, stream;
};

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

// Compares with the outputs of the first call.
void Compare(const CallArrays& arrays,
             std::vector<std::vector<float>>* wanted) {
  if (wanted->empty()) *wanted = arrays.Outputs();
  Require(arrays.Equals(*wanted), "other bits after a failure");
}

void UseStream(const tf_lstm_ops_session* session, CallArrays* arrays,
               std::vector<std::vector<float>>* wanted) {
  tf_lstm_ops_stream* stream = nullptr;
  if (!Succeeded(tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr))) {
    return;
  }
  if (Succeeded(arrays->Run(stream, nullptr))) Compare(*arrays, wanted);
  tf_lstm_ops_stream_close(stream);
}

void UseSession(const tf_lstm_ops_session* session, Wanted* wanted) {
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Succeeded(tf_lstm_ops_session_get_info(session, &info, nullptr));
  int32_t code;
  // The vectors of the test do not fail.
  const int64_t fails = g_fails.exchange(0);
  CallArrays arrays(session, info, kBatch, kSteps, &code);
  g_fails = fails;
  Require(code == TF_LSTM_OPS_OK, "no shapes");
  const auto run = [&](bool is_masked) {
    return Succeeded(arrays.Run(session, is_masked, nullptr));
  };
  run(true);
  // The session works after a failed call. Two calls: one allocation fails.
  Require(run(false) || run(false), "no call works after a failure");
  Compare(arrays, &wanted->session);
  if (info.can_stream) UseStream(session, &arrays, &wanted->stream);
}

// Opens and computes, up to the first call that fails.
void Use(const char* path, int threads, Wanted* wanted) {
  tf_lstm_ops_session_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  tf_lstm_ops_session* session = nullptr;
  if (!Succeeded(tf_lstm_ops_session_open(path, &options, &session, nullptr))) {
    return;
  }
  UseSession(session, wanted);
  tf_lstm_ops_session_close(session);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: failing_allocations FILE THREADS\n");
    return 2;
  }
  Wanted wanted;
  Use(argv[1], std::atoi(argv[2]), &wanted);
  // Until all allocations succeed.
  for (int64_t number = 1;; ++number) {
    const int64_t before = g_live;
    for (int k = 0; k < kTimes; ++k) {
      g_allocations = 0;
      g_fails = number;
      Use(argv[1], std::atoi(argv[2]), &wanted);
      g_fails = 0;
    }
    if (g_live - before > kKept) {
      std::fprintf(stderr, "allocation %lld: memory is not free\n",
                   static_cast<long long>(number));
      return 1;
    }
    if (g_allocations < number) {
      std::printf("%lld failed\n", static_cast<long long>(number - 1));
      return 0;
    }
  }
}
