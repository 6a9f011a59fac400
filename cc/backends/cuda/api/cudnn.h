// The part of cuDNN 9 that this package calls, declared here so that building
// needs no CUDA. A test compiles this file together with NVIDIA's headers: a
// declaration that differs does not compile.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_API_CUDNN_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_API_CUDNN_H_

#include <cstddef>
#include <cstdint>

extern "C" {

struct CUstream_st;
struct cudnnContext;
struct cudnnDropoutStruct;
struct cudnnRNNDataStruct;
struct cudnnRNNStruct;
struct cudnnTensorStruct;
typedef struct cudnnContext* cudnnHandle_t;
typedef struct cudnnDropoutStruct* cudnnDropoutDescriptor_t;
typedef struct cudnnRNNDataStruct* cudnnRNNDataDescriptor_t;
typedef struct cudnnRNNStruct* cudnnRNNDescriptor_t;
typedef struct cudnnTensorStruct* cudnnTensorDescriptor_t;

#ifndef CUDNN_GRAPH_H_
typedef enum {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
} cudnnStatus_t;

typedef enum {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
} cudnnDataType_t;

typedef enum {
  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_FMA_MATH = 3,
} cudnnMathType_t;
#endif

#ifndef CUDNN_ADV_H_
typedef enum {
  CUDNN_RNN_ALGO_STANDARD = 0,
} cudnnRNNAlgo_t;

typedef enum {
  CUDNN_FWD_MODE_INFERENCE = 0,
  CUDNN_FWD_MODE_TRAINING = 1,
} cudnnForwardMode_t;

typedef enum {
  CUDNN_RNN_RELU = 0,
  CUDNN_RNN_TANH = 1,
  CUDNN_LSTM = 2,
  CUDNN_GRU = 3,
} cudnnRNNMode_t;

typedef enum { CUDNN_RNN_DOUBLE_BIAS = 2 } cudnnRNNBiasMode_t;

typedef enum {
  CUDNN_UNIDIRECTIONAL = 0,
  CUDNN_BIDIRECTIONAL = 1,
} cudnnDirectionMode_t;

typedef enum {
  CUDNN_LINEAR_INPUT = 0,
  CUDNN_SKIP_INPUT = 1,
} cudnnRNNInputMode_t;

typedef enum {
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2,
} cudnnRNNDataLayout_t;

typedef enum { CUDNN_WGRAD_MODE_ADD = 0 } cudnnWgradMode_t;

#define CUDNN_RNN_PADDED_IO_ENABLED (1U << 0)
#endif

size_t cudnnGetVersion(void);
const char* cudnnGetErrorString(cudnnStatus_t);
void cudnnGetLastErrorString(char* message, size_t max_size);
cudnnStatus_t cudnnCreate(cudnnHandle_t*);
cudnnStatus_t cudnnSetStream(cudnnHandle_t, struct CUstream_st*);

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t*);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t,
                                         cudnnDataType_t, int rank,
                                         const int dims[], const int strides[]);

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t*);
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t);
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t,
                                        float dropout, void* states,
                                        size_t states_size,
                                        unsigned long long seed);

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t*);
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t);
cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t, cudnnRNNAlgo_t, cudnnRNNMode_t, cudnnRNNBiasMode_t,
    cudnnDirectionMode_t, cudnnRNNInputMode_t, cudnnDataType_t data_type,
    cudnnDataType_t math_precision, cudnnMathType_t, int32_t input_size,
    int32_t hidden_size, int32_t projection_size, int32_t layers,
    cudnnDropoutDescriptor_t, uint32_t aux_flags);

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t*);
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t);
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t,
                                        cudnnDataType_t, cudnnRNNDataLayout_t,
                                        int time, int batch, int vector_size,
                                        const int lengths[],
                                        void* padding_fill);

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t,
                                        cudnnForwardMode_t,
                                        cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t,
                                         size_t* size);

cudnnStatus_t cudnnRNNForward(
    cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
    const int32_t device_lengths[], cudnnRNNDataDescriptor_t, const void* x,
    cudnnRNNDataDescriptor_t, void* y, cudnnTensorDescriptor_t, const void* hx,
    void* hy, cudnnTensorDescriptor_t, const void* cx, void* cy,
    size_t weight_space_size, const void* weight_space, size_t workspace_size,
    void* workspace, size_t reserve_size, void* reserve);
cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t, cudnnRNNDescriptor_t, const int32_t device_lengths[],
    cudnnRNNDataDescriptor_t, const void* y, const void* dy,
    cudnnRNNDataDescriptor_t, void* dx, cudnnTensorDescriptor_t, const void* hx,
    const void* dhy, void* dhx, cudnnTensorDescriptor_t, const void* cx,
    const void* dcy, void* dcx, size_t weight_space_size,
    const void* weight_space, size_t workspace_size, void* workspace,
    size_t reserve_size, void* reserve);
cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t,
    const int32_t device_lengths[], cudnnRNNDataDescriptor_t, const void* x,
    cudnnTensorDescriptor_t, const void* hx, cudnnRNNDataDescriptor_t,
    const void* y, size_t weight_space_size, void* weight_gradients,
    size_t workspace_size, void* workspace, size_t reserve_size, void* reserve);

}  // extern "C"

static_assert(CUDNN_STATUS_SUCCESS == 0 && CUDNN_STATUS_BAD_PARAM == 2000 &&
              CUDNN_STATUS_NOT_SUPPORTED == 3000);
static_assert(CUDNN_DATA_FLOAT == 0 && CUDNN_DATA_DOUBLE == 1 &&
              CUDNN_DATA_HALF == 2);
static_assert(CUDNN_DEFAULT_MATH == 0 && CUDNN_TENSOR_OP_MATH == 1 &&
              CUDNN_FMA_MATH == 3 && CUDNN_RNN_ALGO_STANDARD == 0);
static_assert(CUDNN_FWD_MODE_INFERENCE == 0 && CUDNN_FWD_MODE_TRAINING == 1);
static_assert(CUDNN_RNN_RELU == 0 && CUDNN_RNN_TANH == 1 && CUDNN_LSTM == 2 &&
              CUDNN_GRU == 3 && CUDNN_RNN_DOUBLE_BIAS == 2);
static_assert(CUDNN_UNIDIRECTIONAL == 0 && CUDNN_BIDIRECTIONAL == 1);
static_assert(CUDNN_LINEAR_INPUT == 0 && CUDNN_SKIP_INPUT == 1);
static_assert(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED == 0 &&
              CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED == 2);
static_assert(CUDNN_WGRAD_MODE_ADD == 0 && CUDNN_RNN_PADDED_IO_ENABLED == 1);

// The functions that are called, for cudnn/library.h.
#define TF_LSTM_OPS_CUDA_CUDNN(F)  \
  F(cudnnGetVersion)               \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnCreate)                   \
  F(cudnnSetStream)                \
  F(cudnnCreateTensorDescriptor)   \
  F(cudnnDestroyTensorDescriptor)  \
  F(cudnnSetTensorNdDescriptor)    \
  F(cudnnCreateDropoutDescriptor)  \
  F(cudnnDestroyDropoutDescriptor) \
  F(cudnnSetDropoutDescriptor)     \
  F(cudnnCreateRNNDescriptor)      \
  F(cudnnDestroyRNNDescriptor)     \
  F(cudnnSetRNNDescriptor_v8)      \
  F(cudnnCreateRNNDataDescriptor)  \
  F(cudnnDestroyRNNDataDescriptor) \
  F(cudnnSetRNNDataDescriptor)     \
  F(cudnnGetRNNTempSpaceSizes)     \
  F(cudnnGetRNNWeightSpaceSize)    \
  F(cudnnRNNForward)               \
  F(cudnnRNNBackwardData_v8)       \
  F(cudnnRNNBackwardWeights_v8)

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_API_CUDNN_H_
