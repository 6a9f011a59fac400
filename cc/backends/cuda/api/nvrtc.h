// The part of NVRTC, CUDA's compiler as a library, that this backend calls; see
// api/driver.h.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_API_NVRTC_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_API_NVRTC_H_

#include <cstddef>

extern "C" {

#ifndef __NVRTC_H__
typedef enum { NVRTC_SUCCESS = 0 } nvrtcResult;
#endif
typedef struct _nvrtcProgram* nvrtcProgram;  // NOLINT: NVIDIA's name

static_assert(NVRTC_SUCCESS == 0);

const char* nvrtcGetErrorString(nvrtcResult);
nvrtcResult nvrtcGetNumSupportedArchs(int* count);
nvrtcResult nvrtcGetSupportedArchs(int* architectures);
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char* source,
                               const char* name, int header_count,
                               const char* const* headers,
                               const char* const* include_names);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*);
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int option_count,
                                const char* const* options);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t* size);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char* cubin);
nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* size);
nvrtcResult nvrtcGetPTX(nvrtcProgram, char* ptx);
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t* size);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char* log);

}  // extern "C"

// The functions that are called, for runtime/libraries.h.
#define TF_LSTM_OPS_CUDA_NVRTC(F) \
  F(nvrtcGetErrorString)          \
  F(nvrtcGetNumSupportedArchs)    \
  F(nvrtcGetSupportedArchs)       \
  F(nvrtcCreateProgram)           \
  F(nvrtcDestroyProgram)          \
  F(nvrtcCompileProgram)          \
  F(nvrtcGetCUBINSize)            \
  F(nvrtcGetCUBIN)                \
  F(nvrtcGetPTXSize)              \
  F(nvrtcGetPTX)                  \
  F(nvrtcGetProgramLogSize)       \
  F(nvrtcGetProgramLog)

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_API_NVRTC_H_
