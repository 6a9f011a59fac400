// Compiles device code with the host's compiler: each kernel becomes a function
// that runs all its threads, one after the other. The kernel that the
// environment variable FAKE_BROKEN names does nothing.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_

#include <cmath>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__

struct FakeIndex {
  unsigned x;
};
static FakeIndex blockDim, blockIdx, threadIdx;

inline bool FakeIsBroken(const char* kernel) {
  const char* broken = std::getenv("FAKE_BROKEN");
  return broken != nullptr && std::strcmp(broken, kernel) == 0;
}

#define TF_LSTM_OPS_KERNEL(name, ...)                                          \
  static void name##_thread(const __VA_ARGS__& a);                             \
  extern "C" void name(const void* arguments, unsigned grid, unsigned block) { \
    if (FakeIsBroken(#name)) return;                                           \
    blockDim.x = block;                                                        \
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {                    \
      for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) {              \
        name##_thread(*static_cast<const __VA_ARGS__*>(arguments));            \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void name##_thread(const __VA_ARGS__& a)

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
