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
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;

#ifndef __cuda_cuda_h__
typedef enum cudaError_enum { CUDA_SUCCESS = 0 } CUresult;
typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
} CUdevice_attribute;
#endif

static_assert(CUDA_SUCCESS == 0);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);

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
// Memory that is not page-locked may be changed after the call.
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                              CUstream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x,
                        unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream, void** parameters,
                        void** extra);

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
  F(cuMemcpyHtoDAsync_v2)          \
  F(cuMemsetD8Async)               \
  F(cuLaunchKernel)

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_API_DRIVER_H_
