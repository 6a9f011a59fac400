#include "tf/cuda/stream.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "tf/cuda/stream_library/stream.h"

namespace tf_lstm_ops::tf {
namespace {

// Names the library. The Python package sets it (_cuda_stream.py).
constexpr char kVariable[] = "TF_LSTM_OPS_CUDA_STREAM_LIBRARY";

using Function = decltype(&::tf_lstm_ops_cuda_stream);

Function Open() {
  const char* path = std::getenv(kVariable);
  if (!path) return nullptr;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  return reinterpret_cast<Function>(dlsym(library, "tf_lstm_ops_cuda_stream"));
}

// Opens the library once. After a failure, the next call tries again.
Status FindFunction(Function* function) {
  static std::mutex mutex;
  static Function found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!found) found = Open();
  if (!found) {
    const char* error = dlerror();
    return MakeStatus(
        Code::kFailedPrecondition, "tf_lstm_ops: ", kVariable,
        " must be the path of the library that returns "
        "TensorFlow's CUDA stream; the import of the Python package "
        "tf_lstm_ops makes it and sets the variable",
        error ? ": " : "", error ? error : "");
  }
  *function = found;
  return Status();
}

}  // namespace

Status CudaStream(TF_OpKernelContext* context, void** stream) {
  Function function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindFunction(&function));
  *stream = function(context);
  if (*stream) return Status();
  return MakeStatus(Code::kFailedPrecondition,
                    "tf_lstm_ops: the device GPU has no CUDA stream");
}

}  // namespace tf_lstm_ops::tf
