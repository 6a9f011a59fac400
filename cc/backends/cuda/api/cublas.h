// The part of cuBLAS that this backend calls; see api/driver.h.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_API_CUBLAS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_API_CUBLAS_H_

extern "C" {

struct CUstream_st;
typedef struct cublasContext* cublasHandle_t;

#ifndef CUBLAS_API_H_
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
} cublasComputeType_t;
typedef enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_16BF = 14,
} cudaDataType;
#endif

static_assert(CUBLAS_STATUS_SUCCESS == 0 && CUBLAS_GEMM_DEFAULT == -1);
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1);
static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_COMPUTE_64F == 70 &&
              CUBLAS_COMPUTE_32F_FAST_TF32 == 77);
static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 &&
              CUDA_R_16BF == 14);

const char* cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasCreate_v2(cublasHandle_t*);
cublasStatus_t cublasSetStream_v2(cublasHandle_t, CUstream_st*);
// c = alpha * op_a(a) op_b(b) + beta * c, for column-major matrices whose
// columns begin `*_stride` elements apart.
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t op_a,
                            cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a,
                            cudaDataType a_type, int a_stride, const void* b,
                            cudaDataType b_type, int b_stride, const void* beta,
                            void* c, cudaDataType c_type, int c_stride,
                            cublasComputeType_t, cublasGemmAlgo_t);

}  // extern "C"

// The functions that are called, for runtime/libraries.h.
#define TF_LSTM_OPS_CUDA_CUBLAS(F) \
  F(cublasGetStatusString)         \
  F(cublasCreate_v2)               \
  F(cublasSetStream_v2)            \
  F(cublasGemmEx)

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_API_CUBLAS_H_
