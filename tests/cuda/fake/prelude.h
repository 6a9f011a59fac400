// Compiles device code with the host's compiler: each kernel becomes a function
// that runs all its threads, one after the other.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_

#include <cmath>

#define __device__
#define __global__

struct FakeIndex {
  unsigned x;
};
static FakeIndex blockDim, blockIdx, threadIdx;

#define TF_LSTM_OPS_KERNEL(name, ...)                                          \
  static void name##_thread(const __VA_ARGS__& a);                             \
  extern "C" void name(const void* arguments, unsigned grid, unsigned block) { \
    blockDim.x = block;                                                        \
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {                    \
      for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) {              \
        name##_thread(*static_cast<const __VA_ARGS__*>(arguments));            \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void name##_thread(const __VA_ARGS__& a)

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
