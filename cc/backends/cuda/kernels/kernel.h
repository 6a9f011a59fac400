// Definitions for all device code. Each kernel has one parameter, a structure
// of plain values, so the host launches all kernels in the same way.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERNEL_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERNEL_H_

#include <cstdint>

#include "backends/cuda/kernels/block.h"
#include "core/float16.h"

// Defines a kernel. `extern "C"`: the host finds a kernel by its name. The
// bound is one block per multiprocessor. With more, the compiler would spill
// registers.
#ifndef TF_LSTM_OPS_KERNEL
#define TF_LSTM_OPS_KERNEL(name, ...)                                          \
  extern "C" __global__ void __launch_bounds__(::tf_lstm_ops::cuda::kBlock, 1) \
      name(const __grid_constant__ __VA_ARGS__ a)
#endif

namespace tf_lstm_ops::cuda {

// The index of this thread in the grid.
__device__ inline int64_t Thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Conversions between the element type of a tensor and the type of the
// computation.
template <class T>
struct Number {
  using Compute = T;
  __device__ static Compute Load(T value) { return value; }
  __device__ static T Store(Compute value) { return value; }
};
template <class T>
struct Number16 {
  using Compute = float;
  __device__ static float Load(T value) { return value.ToFloat(); }
  __device__ static T Store(float value) { return T::FromFloat(value); }
};
template <>
struct Number<Half> : Number16<Half> {};
template <>
struct Number<BFloat16> : Number16<BFloat16> {};

// The Math of the cells in core/, on scalars.
template <class C>
struct ScalarMathBase {
  using Value = C;
  __device__ static C IfPositive(C c, C yes, C no) { return c > 0 ? yes : no; }
  __device__ static C Min(C a, C b) { return b < a ? b : a; }
  __device__ static C Max(C a, C b) { return a < b ? b : a; }
};
template <class C>
struct ScalarMath;
template <>
struct ScalarMath<float> : ScalarMathBase<float> {
  __device__ static float Sigmoid(float z) { return 1 / (1 + expf(-z)); }
  __device__ static float Tanh(float z) { return tanhf(z); }
};
template <>
struct ScalarMath<double> : ScalarMathBase<double> {
  __device__ static double Sigmoid(double z) { return 1 / (1 + exp(-z)); }
  __device__ static double Tanh(double z) { return tanh(z); }
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERNEL_H_
