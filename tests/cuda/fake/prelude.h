// Compiles device code with the host's compiler: each kernel becomes a function
// that runs all its threads, one after the other; those of a cooperative kernel
// as fibers (fibers.h).
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_

#include <cmath>
#include <cstring>

#include "fibers.h"
#include "tensor_core.h"

#define __device__
#define __global__

using fake::blockDim;
using fake::blockIdx;
using fake::gridDim;
using fake::threadIdx;

#define TF_LSTM_OPS_KERNEL(name, ...)                                        \
  static void name##_thread(const __VA_ARGS__& a);                           \
  extern "C" void name(const void* arguments, unsigned grid, unsigned block, \
                       unsigned, unsigned) {                                 \
    gridDim.x = grid;                                                        \
    blockDim.x = block;                                                      \
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {                  \
      for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) {            \
        name##_thread(*static_cast<const __VA_ARGS__*>(arguments));          \
      }                                                                      \
    }                                                                        \
  }                                                                          \
  static void name##_thread(const __VA_ARGS__& a)

#define TF_LSTM_OPS_COOPERATIVE_KERNEL(name, ...)                            \
  static void name##_thread(const __VA_ARGS__& a);                           \
  extern "C" const bool name##_is_cooperative = true;                        \
  extern "C" void name(const void* arguments, unsigned grid, unsigned block, \
                       unsigned shared_bytes, unsigned cluster) {            \
    const auto thread = [](const void* given) {                              \
      name##_thread(*static_cast<const __VA_ARGS__*>(given));                \
    };                                                                       \
    fake::Grid(thread, arguments, grid, block, shared_bytes, cluster).Run(); \
  }                                                                          \
  static void name##_thread(const __VA_ARGS__& a)

#define TF_LSTM_OPS_SHARED_MEMORY(name) \
  auto* const name =                    \
      static_cast<::tf_lstm_ops::cuda::Words*>(fake::Grid::Current().Shared())

#define TF_LSTM_OPS_MMA(kind, a, b, c) fake::Mma(kind).Multiply(a, b, c)

#define TF_LSTM_OPS_TO_TF32(to, from) (to) = fake::ToTf32(from)

#define TF_LSTM_OPS_ARRIVE(arrivals) ++*(arrivals)
#define TF_LSTM_OPS_LOAD_ARRIVALS(to, arrivals) \
  (to) = fake::Grid::Current().Spin() ? *(arrivals) : ~0u

#define TF_LSTM_OPS_STORE_IN_CLUSTER(type, constraint, own, block, value) \
  std::memcpy(fake::Grid::Current().InCluster(own, block), &(value),      \
              sizeof *(own))
#define TF_LSTM_OPS_ARRIVE_IN_CLUSTER() fake::Grid::Current().ArriveInCluster()
#define TF_LSTM_OPS_WAIT_FOR_CLUSTER() fake::Grid::Current().WaitForCluster()

inline void __syncthreads() { fake::Grid::Current().SyncBlock(); }

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_PRELUDE_H_
