#include "backends/cuda/layer/products.h"

#include <dlfcn.h>

#include <limits>
#include <type_traits>

#include "backends/cuda/layer/tensors.h"
#include "backends/cuda/runtime/types.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
cublasComputeType_t CublasComputeType() {
  if (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  if (!std::is_same_v<T, float>) return CUBLAS_COMPUTE_32F;
  return AllowsTf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// A matrix as an operand of cuBLAS, which is column-major.
struct ByColumn {
  cublasOperation_t operation;
  int stride;
};

// The leading dimension of a matrix of a single row or column may be anything
// large enough.
template <class T>
ByColumn AsColumns(const Matrix<T>& m) {
  const bool plain = m.row_stride == 1;
  const int64_t stride = plain ? m.column_stride : m.row_stride;
  const int64_t least = plain ? m.rows : m.columns;
  return {plain ? CUBLAS_OP_N : CUBLAS_OP_T,
          static_cast<int>(stride < least ? least : stride)};
}

template <class C>
Status ZeroMatrix(const Device& device, const Matrix<C>& c) {
  const bool by_row = c.column_stride == 1;
  return Copy(device,
              CopyRows<C, C>{by_row ? c.rows : c.columns,
                             by_row ? c.columns : c.rows, nullptr, 0, c.data,
                             by_row ? c.row_stride : c.column_stride});
}

template <class T>
bool Fits(const Matrix<T>& m) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return m.rows <= kMost && m.columns <= kMost && m.row_stride <= kMost &&
         m.column_stride <= kMost;
}

// Multiply for a c whose columns are contiguous, as cuBLAS writes them.
template <class T, class C>
Status MultiplyByColumn(const Device& device, const Matrix<const T>& a,
                        const Matrix<const T>& b, bool adds,
                        const Matrix<C>& c) {
  if (!Fits(a) || !Fits(b) || !Fits(c)) {
    return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: a product of ",
                      c.rows, " x ", a.columns, " x ", c.columns,
                      " is too large for cuBLAS");
  }
  const Cublas* cublas = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(Open(&cublas));
  cublasHandle_t handle = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Cublas(&handle));
  using Scale = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Scale alpha = 1, beta = adds ? 1 : 0;
  const ByColumn of_a = AsColumns(a), of_b = AsColumns(b), of_c = AsColumns(c);
  return Check(
      *cublas,
      cublas->cublasGemmEx(
          handle, of_a.operation, of_b.operation, static_cast<int>(c.rows),
          static_cast<int>(c.columns), static_cast<int>(a.columns), &alpha,
          a.data, kCublasType<T>, of_a.stride, b.data, kCublasType<T>,
          of_b.stride, &beta, c.data, kCublasType<C>, of_c.stride,
          CublasComputeType<T>(), CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

}  // namespace

// tsl::tensor_float_32_execution_enabled(), which TensorFlow's framework
// library exports; without TensorFlow its default, true.
bool AllowsTf32() {
  static auto* const enabled = reinterpret_cast<bool (*)()>(
      dlsym(RTLD_DEFAULT, "_ZN3tsl33tensor_float_32_execution_enabledEv"));
  return enabled == nullptr || enabled();
}

template <class T, class C>
Status Multiply(const Device& device, const Matrix<const T>& a,
                const Matrix<const T>& b, bool adds, const Matrix<C>& c) {
  if (c.rows == 0 || c.columns == 0) return Status();
  if (a.columns == 0) {
    return adds ? Status() : ZeroMatrix(device, c);
  }
  if (c.row_stride == 1) {
    return MultiplyByColumn(device, a, b, adds, c);
  }
  return MultiplyByColumn(device, b.Transposed(), a.Transposed(), adds,
                          c.Transposed());
}

#define TF_LSTM_OPS_INSTANTIATE(T, C)                             \
  template Status Multiply(const Device&, const Matrix<const T>&, \
                           const Matrix<const T>&, bool, const Matrix<C>&);
TF_LSTM_OPS_INSTANTIATE(float, float)
TF_LSTM_OPS_INSTANTIATE(double, double)
TF_LSTM_OPS_INSTANTIATE(Half, Half)
TF_LSTM_OPS_INSTANTIATE(Half, float)
TF_LSTM_OPS_INSTANTIATE(BFloat16, BFloat16)
TF_LSTM_OPS_INSTANTIATE(BFloat16, float)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
