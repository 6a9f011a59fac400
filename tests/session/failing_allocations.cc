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
#include <cstring>
#include <vector>

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

struct Arrays {
  std::vector<float> x, y, wanted;
  std::vector<uint8_t> mask;
};

// Opens and computes, up to the first call that fails. Without arrays it makes
// them.
void Use(const char* path, int threads, Arrays* arrays) {
  tf_lstm_ops_session_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  tf_lstm_ops_session* session = nullptr;
  if (!Succeeded(tf_lstm_ops_session_open(path, &options, &session, nullptr))) {
    return;
  }
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Succeeded(tf_lstm_ops_session_get_info(session, &info, nullptr));
  const bool is_first = arrays->x.empty();
  if (is_first) {
    arrays->x.assign(kBatch * kSteps * info.input_size, 0.5F);
    arrays->mask.assign(kBatch * kSteps, 1);
    for (size_t k = 0; k < arrays->mask.size(); k += 3) arrays->mask[k] = 0;
    arrays->y.resize(kBatch * (info.returns_sequence ? kSteps : 1) *
                     info.output_size);
  }
  const auto run = [&](const uint8_t* mask) {
    return Succeeded(
        tf_lstm_ops_session_run(session, kBatch, kSteps, arrays->x.data(), mask,
                                arrays->y.data(), arrays->y.size(), nullptr));
  };
  run(arrays->mask.data());
  // The session works after a failed call. Two calls: one allocation fails.
  if (!run(nullptr) && !run(nullptr)) std::_Exit(1);
  if (is_first) arrays->wanted = arrays->y;
  const size_t bytes = arrays->y.size() * sizeof(float);
  if (std::memcmp(arrays->y.data(), arrays->wanted.data(), bytes) != 0) {
    std::fprintf(stderr, "other bits after a failure\n");
    std::_Exit(1);
  }
  tf_lstm_ops_stream* stream = nullptr;
  if (info.can_stream &&
      Succeeded(tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr))) {
    Succeeded(tf_lstm_ops_stream_run(stream, kSteps, arrays->x.data(),
                                     arrays->x.size(), arrays->y.data(),
                                     arrays->y.size(), nullptr));
    tf_lstm_ops_stream_close(stream);
  }
  tf_lstm_ops_session_close(session);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: failing_allocations FILE THREADS\n");
    return 2;
  }
  Arrays arrays;
  Use(argv[1], std::atoi(argv[2]), &arrays);
  // Until all allocations succeed.
  for (int64_t number = 1;; ++number) {
    const int64_t before = g_live;
    for (int k = 0; k < kTimes; ++k) {
      g_allocations = 0;
      g_fails = number;
      Use(argv[1], std::atoi(argv[2]), &arrays);
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
