// Element types: the type of the computation, and the names of a type in device
// code and in cuBLAS. T is float, double, Half or BFloat16.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TYPES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TYPES_H_

#include <string>
#include <type_traits>

#include "backends/cuda/api/cublas.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {

// The type of values between products: float for 16-bit types, else T.
template <class T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, double>, double, float>;

// The name in device code.
template <class T>
const char* TypeName() {
  return std::is_same_v<T, Half>       ? "Half"
         : std::is_same_v<T, BFloat16> ? "BFloat16"
         : std::is_same_v<T, double>   ? "double"
                                       : "float";
}
// The macro that compiles a program for T.
template <class T>
std::string TypeMacro() {
  return std::string("TF_LSTM_OPS_TYPE=") + TypeName<T>();
}

// The name in cuBLAS.
template <class T>
inline constexpr cudaDataType kCublasType = CUDA_R_32F;
template <>
inline constexpr cudaDataType kCublasType<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType kCublasType<Half> = CUDA_R_16F;
template <>
inline constexpr cudaDataType kCublasType<BFloat16> = CUDA_R_16BF;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TYPES_H_
