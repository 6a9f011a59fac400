// A fake libcublas.so.12 in host memory. It checks types, strides and pointers,
// and accumulates in double.
#include "backends/cuda/api/cublas.h"

#include <cstdint>
#include <vector>

#include "core/float16.h"

struct cublasContext {
  CUstream_st* stream = nullptr;
};

namespace {

using tf_lstm_ops::BFloat16;
using tf_lstm_ops::Half;

constexpr auto kInvalidValue = static_cast<cublasStatus_t>(7);
constexpr auto kNotSupported = static_cast<cublasStatus_t>(15);

double Get(const void* data, cudaDataType type, int64_t at) {
  switch (type) {
    case CUDA_R_16F:
      return static_cast<const Half*>(data)[at].ToFloat();
    case CUDA_R_16BF:
      return static_cast<const BFloat16*>(data)[at].ToFloat();
    case CUDA_R_32F:
      return static_cast<const float*>(data)[at];
    default:
      return static_cast<const double*>(data)[at];
  }
}

void Put(double value, void* data, cudaDataType type, int64_t at) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case CUDA_R_16F:
      static_cast<Half*>(data)[at] = Half::FromFloat(single);
      break;
    case CUDA_R_16BF:
      static_cast<BFloat16*>(data)[at] = BFloat16::FromFloat(single);
      break;
    case CUDA_R_32F:
      static_cast<float*>(data)[at] = single;
      break;
    default:
      static_cast<double*>(data)[at] = value;
  }
}

// The combinations of types in cuBLAS' documentation.
bool IsSupported(cudaDataType a, cudaDataType c, cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_64F:
      return a == CUDA_R_64F && c == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return a == CUDA_R_32F && c == CUDA_R_32F;
    case CUBLAS_COMPUTE_32F:
      return a != CUDA_R_64F && (c == a || c == CUDA_R_32F);
    default:
      return false;
  }
}

struct Factor {
  std::vector<double> elements;  // [rows, columns]

  // Reads a matrix, [rows, columns] after the operation, that is stored by
  // column.
  Factor(const void* data, cudaDataType type, cublasOperation_t operation,
         int rows, int columns, int64_t stride)
      : elements(static_cast<size_t>(rows) * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at =
            operation == CUBLAS_OP_N ? i + j * stride : j + i * stride;
        elements[i * columns + j] = Get(data, type, at);
      }
    }
  }
};

double Scale(const void* scale, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F ? *static_cast<const double*>(scale)
                                       : *static_cast<const float*>(scale);
}

int compute_type = 0;

}  // namespace

extern "C" {

// The compute type of the last product.
int fake_compute_type() { return compute_type; }

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                 : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t cublasGetProperty(int, int* value) {
  *value = 12;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream_st* stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                            cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a,
                            cudaDataType a_type, int a_stride, const void* b,
                            cudaDataType b_type, int b_stride, const void* beta,
                            void* c, cudaDataType c_type, int c_stride,
                            cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  if (!IsSupported(a_type, c_type, compute)) return kNotSupported;
  const bool is_sound = handle->stream && m > 0 && n > 0 && k > 0 && a && b &&
                        c && a_type == b_type &&
                        a_stride >= (op_a == CUBLAS_OP_N ? m : k) &&
                        b_stride >= (op_b == CUBLAS_OP_N ? k : n) &&
                        c_stride >= m && algorithm == CUBLAS_GEMM_DEFAULT;
  if (!is_sound) return kInvalidValue;
  compute_type = compute;
  const double add = Scale(beta, compute);
  const Factor left(a, a_type, op_a, m, k, a_stride);
  const Factor right(b, b_type, op_b == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N,
                     n, k, b_stride);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += left.elements[i * k + l] * right.elements[j * k + l];
      }
      const int64_t at = j * c_stride + i;
      sum *= Scale(alpha, compute);
      // With beta 0 the old value is not read.
      if (add != 0) sum += add * Get(c, c_type, at);
      Put(sum, c, c_type, at);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
