// The CUDA libraries. They are opened when a kernel first needs one, so that
// this library loads where there is nothing of CUDA.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_LIBRARIES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_LIBRARIES_H_

#include <vector>

#include "backends/cuda/api/cublas.h"
#include "backends/cuda/api/driver.h"
#include "backends/cuda/api/nvrtc.h"
#include "core/status.h"

namespace tf_lstm_ops::cuda {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name, not an expression
#define TF_LSTM_OPS_CUDA_MEMBER(function) decltype(&::function) function{};

struct Driver {
  TF_LSTM_OPS_CUDA_DRIVER(TF_LSTM_OPS_CUDA_MEMBER)
};
struct Nvrtc {
  TF_LSTM_OPS_CUDA_NVRTC(TF_LSTM_OPS_CUDA_MEMBER)
};
struct Cublas {
  TF_LSTM_OPS_CUDA_CUBLAS(TF_LSTM_OPS_CUDA_MEMBER)
};

// The functions of a library, opened once. Errors: FailedPrecondition where it
// is not there; the message names it and what it comes with.
Status Open(const Driver** driver);
Status Open(const Nvrtc** nvrtc);
Status Open(const Cublas** cublas);

// Internal, with the name of the call and the error, unless it succeeded.
Status Check(const Driver& driver, CUresult result, const char* call);
Status Check(const Nvrtc& nvrtc, nvrtcResult result, const char* call);
Status Check(const Cublas& cublas, cublasStatus_t result, const char* call);

// For Open of further libraries.
struct Library {
  const char* name;                // for people
  std::vector<const char*> files;  // the newest first
  const char* folder;              // of the pip package, in nvidia/
  const char* comes_with;          // what to install
};
struct Symbol {
  const char* name;
  void** address;  // is set
};
Status Open(const Library& library, const std::vector<Symbol>& symbols);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_LIBRARIES_H_
