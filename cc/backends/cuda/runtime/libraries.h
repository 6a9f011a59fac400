// The CUDA libraries. Each is opened on first use, so that this library loads
// on a machine without CUDA.
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

// Sets the pointer to the functions of a library, which is opened once and kept
// for the process. Errors: FailedPrecondition where it cannot be loaded; the
// message names the library and its package.
Status Open(const Driver** driver);
Status Open(const Nvrtc** nvrtc);
Status Open(const Cublas** cublas);

// Errors: Internal, with the name of the call and the error, unless the call
// succeeded.
Status Check(const Driver& driver, CUresult result, const char* call);
Status Check(const Nvrtc& nvrtc, nvrtcResult result, const char* call);
Status Check(const Cublas& cublas, cublasStatus_t result, const char* call);

// A library to open.
struct Library {
  const char* name;                // in messages
  std::vector<const char*> files;  // the newest first
  const char* folder;              // of its pip package, within nvidia/
  const char* comes_with;          // its package, in messages
};
// A function of a library.
struct Symbol {
  const char* name;
  void** address;  // out
};
// Opens a library and sets the addresses of its functions. Errors:
// FailedPrecondition where the library or one of the functions is not found.
Status Open(const Library& library, const std::vector<Symbol>& symbols);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_LIBRARIES_H_
