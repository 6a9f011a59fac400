// Products of matrices in the device's memory, through cuBLAS.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PRODUCTS_H_

#include <cstdint>

#include "backends/cuda/runtime/device.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {

// `count` matrices, `step` numbers apart. Element (i, j) is at data[i *
// row_stride + j * column_stride]; one of the strides is 1.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int64_t step = 0;

  Matrix Transposed() const {
    return {data, columns, rows, column_stride, row_stride, step};
  }
};

// cuBLAS' name of an element type.
template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
inline constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType kType<Half> = CUDA_R_16F;
template <>
inline constexpr cudaDataType kType<BFloat16> = CUDA_R_16BF;

// Whether products of float may be taken as TF32: TensorFlow's setting.
bool AllowsTf32();

// c = a b, or c += a b, `count` times. Numbers of 16 bits are multiplied as
// they are and added up in float; float as TF32 where TensorFlow allows it. C
// is T or what T is computed in. The same call always has the same bits.
template <class T, class C>
Status Multiply(const Device& device, const Matrix<const T>& a,
                const Matrix<const T>& b, bool adds, const Matrix<C>& c,
                int count = 1);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_PRODUCTS_H_
