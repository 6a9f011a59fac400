#include "backends/cuda/tf_stream.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "backends/cuda/stream/stream.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr char kVariable[] = "TF_LSTM_OPS_CUDA_STREAM_LIBRARY";

// The folder of this library, with a slash.
std::string OwnFolder() {
  Dl_info info;
  if (!dladdr(kVariable, &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// "2.21" of "2.21.0-rc1".
std::string MinorVersion(const std::string& version) {
  const size_t dot = version.find('.');
  return version.substr(0, version.find('.', dot + 1));
}

std::string LibraryPath() {
  const char* named = std::getenv(kVariable);
  if (named && *named) return named;
  return OwnFolder() + "tf_lstm_ops_cuda_stream_" + MinorVersion(TF_Version()) +
         ".so";
}

using Function = decltype(&::tf_lstm_ops_cuda_stream);

// Found once; looked for again while it is not there.
Status FindFunction(Function* function) {
  static std::mutex mutex;
  static Function found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!found) {
    const std::string path = LibraryPath();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      found =
          reinterpret_cast<Function>(dlsym(library, "tf_lstm_ops_cuda_stream"));
    }
    if (!found) {
      const char* error = dlerror();
      return MakeStatus(Code::kFailedPrecondition,
                        "tf_lstm_ops: no library to ask TensorFlow ",
                        TF_Version(),
                        " for its stream: ", error ? error : path.c_str(), "; ",
                        kVariable, " may name one (docs/cuda.md)");
    }
  }
  *function = found;
  return Status();
}

}  // namespace

Status TfStream(TF_OpKernelContext* context, CUstream* stream) {
  Function function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindFunction(&function));
  *stream = static_cast<CUstream>(function(context));
  if (*stream) return Status();
  return MakeStatus(Code::kFailedPrecondition,
                    "tf_lstm_ops: the device GPU has no CUDA stream");
}

}  // namespace tf_lstm_ops::cuda
