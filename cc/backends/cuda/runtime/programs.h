// Programs: device code, compiled for the device on first use and kept for the
// process.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_

#include <string>
#include <vector>

#include "backends/cuda/runtime/device.h"

namespace tf_lstm_ops::cuda {

// A translation unit of kernels/ and the macros that select a variant of it,
// such as "TF_LSTM_OPS_TYPE=float".
struct Program {
  std::string source;  // "kernels/steps.cu"
  std::vector<std::string> macros;
};

// Sets `function` to the kernel with this name, which the process owns.
// Compiles the program on first use. Thread-safe.
// Errors: FailedPrecondition without NVRTC; Unimplemented for a device that
// NVRTC does not know; Internal with the compiler's log.
Status FindKernel(const Device& device, const Program& program,
                  const char* kernel, CUfunction* function);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_
