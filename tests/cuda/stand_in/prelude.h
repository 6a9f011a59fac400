// Device code as the host's compiler takes it: each kernel becomes a function
// that runs all its threads, one after the other, those of a cooperative one
// until each has to wait.
#ifndef TF_LSTM_OPS_TESTS_CUDA_STAND_IN_PRELUDE_H_
#define TF_LSTM_OPS_TESTS_CUDA_STAND_IN_PRELUDE_H_

#include <cmath>
#include <cstring>

#include "fibers.h"
#include "tensor_core.h"

#define __device__
#define __global__

using stand_in::blockDim;
using stand_in::blockIdx;
using stand_in::gridDim;
using stand_in::threadIdx;

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
    stand_in::Grid(thread, arguments, grid, block, shared_bytes, cluster)    \
        .Run();                                                              \
  }                                                                          \
  static void name##_thread(const __VA_ARGS__& a)

#define TF_LSTM_OPS_SHARED_MEMORY(name)                        \
  auto* const name = static_cast<::tf_lstm_ops::cuda::Words*>( \
      stand_in::Grid::Current().Shared())

#define TF_LSTM_OPS_MMA(kind, a0, a1, a2, a3, b0, b1, c) \
  stand_in::Mma(kind).Multiply({a0, a1, a2, a3}, {b0, b1}, c)

#define TF_LSTM_OPS_TO_TF32(to, from) (to) = stand_in::ToTf32(from)

#define TF_LSTM_OPS_ARRIVE(arrivals) ++*(arrivals)
#define TF_LSTM_OPS_LOAD_ARRIVALS(to, arrivals) \
  (to) = stand_in::Grid::Current().Spin() ? *(arrivals) : ~0u

#define TF_LSTM_OPS_STORE_IN_CLUSTER(type, constraint, here, block, value) \
  std::memcpy(stand_in::Grid::Current().InCluster(here, block), &(value),  \
              sizeof *(here))
#define TF_LSTM_OPS_ARRIVE_IN_CLUSTER() \
  stand_in::Grid::Current().ArriveInCluster()
#define TF_LSTM_OPS_AWAIT_CLUSTER() stand_in::Grid::Current().AwaitCluster()

inline void __syncthreads() { stand_in::Grid::Current().SyncBlock(); }

#endif  // TF_LSTM_OPS_TESTS_CUDA_STAND_IN_PRELUDE_H_
