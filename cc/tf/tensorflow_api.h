// The part of TensorFlow's C API that this package uses, declared here so that
// building needs no TensorFlow. A test compiles this file together with
// TensorFlow's own headers: a declaration that differs does not compile.
//
// These are all functions that the native libraries need. TensorFlow's library
// exports fewer functions with each release. If it lacks one, the native
// library does not load, but for those with TF_LSTM_OPS_OPTIONAL: they are
// looked up when the library is loaded, and their address is null without them.
#ifndef TF_LSTM_OPS_TF_TENSORFLOW_API_H_
#define TF_LSTM_OPS_TF_TENSORFLOW_API_H_

#include <cstddef>
#include <cstdint>

#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

// Tried on Linux only.
#ifdef __linux__
#define TF_LSTM_OPS_OPTIONAL __attribute__((weak))
#else
#define TF_LSTM_OPS_OPTIONAL
#endif

extern "C" {

struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_DimensionHandle;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_Tensor;
struct SP_Stream_st;
struct TSL_Status;
typedef struct SP_Stream_st* SP_Stream;
typedef struct TSL_Status TF_Status;

#ifndef TENSORFLOW_C_TF_STATUS_H_
typedef enum TF_Code { TF_OK = 0, TF_INVALID_ARGUMENT = 3 } TF_Code;
#endif

#ifndef TENSORFLOW_C_TF_DATATYPE_H_
typedef enum TF_DataType {
  TF_FLOAT = 1,
  TF_DOUBLE = 2,
  TF_INT32 = 3,
  TF_INT8 = 6,
  TF_INT64 = 9,
  TF_BOOL = 10,
  TF_BFLOAT16 = 14,
  TF_HALF = 19,
} TF_DataType;
#endif

#ifndef TENSORFLOW_C_TF_BUFFER_H_
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;
#endif

#ifndef TENSORFLOW_C_TF_TENSOR_H_
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  unsigned char on_host;
} TF_AllocatorAttributes;
#endif

static_assert(TF_OK == 0 && TF_INVALID_ARGUMENT == 3);
static_assert(TF_FLOAT == 1 && TF_DOUBLE == 2 && TF_INT32 == 3);
static_assert(TF_INT8 == 6 && TF_INT64 == 9);
static_assert(TF_BOOL == 10 && TF_BFLOAT16 == 14 && TF_HALF == 19);

// Status.
TF_Status* TF_NewStatus(void);
void TF_DeleteStatus(TF_Status*);
void TF_SetStatus(TF_Status*, TF_Code, const char* message);
TF_Code TF_GetCode(const TF_Status*);
const char* TF_Message(const TF_Status*);

// Buffers.
TF_Buffer* TF_NewBuffer(void);
void TF_DeleteBuffer(TF_Buffer*);

// Tensors.
void TF_DeleteTensor(TF_Tensor*);
int TF_NumDims(const TF_Tensor*);
int64_t TF_Dim(const TF_Tensor*, int index);
void* TF_TensorData(const TF_Tensor*);
size_t TF_TensorByteSize(const TF_Tensor*);
int64_t TF_TensorElementCount(const TF_Tensor*);

// Definition of ops.
TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder*,
    void (*function)(TF_ShapeInferenceContext*, TF_Status*));
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder*,
                                         bool is_stateful);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*);

// Shape inference.
TF_ShapeHandle* TF_NewShapeHandle();
void TF_DeleteShapeHandle(TF_ShapeHandle*);
TF_DimensionHandle* TF_NewDimensionHandle();
void TF_DeleteDimensionHandle(TF_DimensionHandle*);
void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext*, int i,
                                      TF_ShapeHandle*, TF_Status*);
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext*, int i,
                                       TF_ShapeHandle*, TF_Status*);
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext*,
                                             TF_Status*);
TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext*);
TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(
    TF_ShapeInferenceContext*, size_t size);
int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext*,
                                      TF_ShapeHandle*);
int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext*,
                                     TF_ShapeHandle*);
void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext*,
                                      TF_ShapeHandle*, int64_t rank,
                                      TF_ShapeHandle* result, TF_Status*);
void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext*, TF_ShapeHandle*,
                                 int64_t i, TF_DimensionHandle* result);
void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext*,
                                      TF_ShapeHandle*, int64_t start,
                                      int64_t end, TF_ShapeHandle* result,
                                      TF_Status*);
void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext*,
                                               TF_ShapeHandle* first,
                                               TF_ShapeHandle* second,
                                               TF_ShapeHandle* result,
                                               TF_Status*);
int TF_DimensionHandleValueKnown(TF_DimensionHandle*);
int64_t TF_DimensionHandleValue(TF_DimensionHandle*);

// Kernels.
TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name,
    void* (*create)(TF_OpKernelConstruction*),
    void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*));
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder*, const char* attribute,
                                     TF_DataType, TF_Status*);
// Kernels for GPUs need it.
TF_LSTM_OPS_OPTIONAL void TF_KernelBuilder_HostMemory(TF_KernelBuilder*,
                                                      const char* argument);
// Kernels that replace TensorFlow's own need it.
TF_LSTM_OPS_OPTIONAL void TF_KernelBuilder_Priority(TF_KernelBuilder*,
                                                    int32_t priority_number);
void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder*,
                              TF_Status*);
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction*,
                                          const char* name, float* value,
                                          TF_Status*);
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction*,
                                         const char* name, TF_Bool* value,
                                         TF_Status*);
void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction*,
                                          const char* name, int64_t* value,
                                          TF_Status*);
void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction*,
                                         const char* name, TF_DataType* value,
                                         TF_Status*);
void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction*,
                                           const char* name, char* value,
                                           size_t max_length, TF_Status*);
// Kernels for GPUs need it.
TF_LSTM_OPS_OPTIONAL SP_Stream TF_GetStream(TF_OpKernelContext*, TF_Status*);
void TF_GetInput(TF_OpKernelContext*, int i, TF_Tensor**, TF_Status*);
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext*, int index, TF_DataType,
                             const int64_t* dims, int num_dims, size_t length,
                             TF_Status*);
TF_Tensor* TF_AllocateTemp(TF_OpKernelContext*, TF_DataType,
                           const int64_t* dims, int num_dims,
                           TF_AllocatorAttributes*, TF_Status*);
// Without these two, the number of threads in TensorFlow's configuration has no
// effect.
TF_LSTM_OPS_OPTIONAL int64_t TF_GetStepId(TF_OpKernelContext*);
TF_LSTM_OPS_OPTIONAL void TF_GetSerializedConfigProto(TF_OpKernelContext*,
                                                      TF_Buffer*, TF_Status*);
void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status*);

}  // extern "C"

#endif  // TF_LSTM_OPS_TF_TENSORFLOW_API_H_
