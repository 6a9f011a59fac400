// Programs: device code, compiled for the card at hand when it is first needed
// and kept, in the process and on disk.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_

#include <string>
#include <vector>

#include "backends/cuda/runtime/device.h"

namespace tf_lstm_ops::cuda {

// One translation unit of kernels/, with the macros that choose among its
// variants, such as "TF_LSTM_OPS_TYPE=float".
struct Program {
  std::string source;  // "kernels/rnn.cu"
  std::vector<std::string> macros;
};

// A kernel of a program by its name. Errors: FailedPrecondition where NVRTC is
// missing; Internal with the compiler's log.
Status FindKernel(const Device& device, const Program& program,
                  const char* kernel, CUfunction* function);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_PROGRAMS_H_
