// The part of CUDA's driver API that this backend calls, declared here so that
// building needs no CUDA. A test compiles this file together with NVIDIA's own
// header: a declaration that differs does not compile.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_API_DRIVER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_API_DRIVER_H_

#include <cstddef>

extern "C" {

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUevent_st* CUevent;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;

#ifndef __cuda_cuda_h__
typedef enum cudaError_enum { CUDA_SUCCESS = 0 } CUresult;
typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
} CUdevice_attribute;
typedef enum CUfunction_attribute_enum {
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
} CUfunction_attribute;
typedef enum CUstreamCaptureStatus_enum {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
} CUstreamCaptureStatus;
typedef enum CUlaunchAttributeID_enum {
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
} CUlaunchAttributeID;
typedef union CUlaunchAttributeValue_union {
  char pad[64];
  struct {
    unsigned int x, y, z;
  } clusterDim;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute_st {  // NOLINT: NVIDIA's name
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {  // NOLINT: NVIDIA's name
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned int numAttrs;
} CUlaunchConfig;
#endif

static_assert(CUDA_SUCCESS == 0);
static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == 16);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN == 97);
static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8);
static_assert(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED == 14);
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == 0);
static_assert(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == 4);
static_assert(offsetof(CUlaunchAttribute, value) == 8);
static_assert(offsetof(CUlaunchAttribute, value.clusterDim.z) == 16);
static_assert(sizeof(CUlaunchAttribute) == 72);
static_assert(offsetof(CUlaunchConfig, gridDimY) == 4);
static_assert(offsetof(CUlaunchConfig, blockDimX) == 12);
static_assert(offsetof(CUlaunchConfig, sharedMemBytes) == 24);
static_assert(offsetof(CUlaunchConfig, hStream) == 32);
static_assert(offsetof(CUlaunchConfig, attrs) == 40);
static_assert(offsetof(CUlaunchConfig, numAttrs) == 48);
static_assert(sizeof(CUlaunchConfig) == 56);

CUresult cuGetErrorName(CUresult error, const char** text);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuInit(unsigned int flags);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                              CUstream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream);
// Sets `height` rows of `width` bytes. Rows begin `pitch` bytes apart.
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value,
                           size_t width, size_t height, CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x,
                        unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream, void** parameters,
                        void** extra);
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int value);
// All blocks of the launch are resident on the device at the same time.
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z,
                                   unsigned int shared_bytes, CUstream,
                                   void** parameters);
// All blocks of a cluster are resident on the device at the same time.
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void** parameters,
                          void** extra);

CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status);
CUresult cuEventCreate(CUevent* event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);

}  // extern "C"

// The functions that are called, for runtime/libraries.h.
#define TF_LSTM_OPS_CUDA_DRIVER(F) \
  F(cuGetErrorName)                \
  F(cuGetErrorString)              \
  F(cuInit)                        \
  F(cuDeviceGetAttribute)          \
  F(cuCtxGetCurrent)               \
  F(cuCtxGetDevice)                \
  F(cuModuleLoadData)              \
  F(cuModuleGetFunction)           \
  F(cuMemcpyDtoDAsync_v2)          \
  F(cuMemcpyDtoHAsync_v2)          \
  F(cuMemsetD8Async)               \
  F(cuMemsetD2D8Async)             \
  F(cuLaunchKernel)                \
  F(cuFuncSetAttribute)            \
  F(cuLaunchCooperativeKernel)     \
  F(cuLaunchKernelEx)              \
  F(cuStreamSynchronize)           \
  F(cuStreamIsCapturing)           \
  F(cuEventCreate)                 \
  F(cuEventDestroy_v2)             \
  F(cuEventRecord)                 \
  F(cuEventSynchronize)            \
  F(cuEventElapsedTime)

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_API_DRIVER_H_
