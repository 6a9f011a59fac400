// Products of matrices in device memory, by cuBLAS.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PRODUCTS_H_

#include <cstdint>

#include "backends/cuda/runtime/device.h"

namespace tf_lstm_ops::cuda {

// A view of a matrix. Element (i, j) is data[i * row_stride + j *
// column_stride]. One of the two strides is 1. Does not own the data.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  Matrix Transposed() const {
    return {data, columns, rows, column_stride, row_stride};
  }
};

// Whether TensorFlow allows that float is multiplied as TF32. True without
// TensorFlow.
bool AllowsTf32();

// c = a b, or c += a b if `adds`. 16-bit types are accumulated in float; float
// is multiplied as TF32 where TensorFlow allows it. C is T or ComputeType<T>. c
// must not overlap a or b. A repeated call gives the same bits. Errors:
// FailedPrecondition without cuBLAS; Unimplemented where a size exceeds an int;
// Internal.
template <class T, class C>
Status Multiply(const Device& device, const Matrix<const T>& a,
                const Matrix<const T>& b, bool adds, const Matrix<C>& c);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PRODUCTS_H_
