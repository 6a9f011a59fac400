#include "backends/cuda/runtime/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace tf_lstm_ops::cuda {
namespace {

// The folder nvidia/ beside TensorFlow's package, where pip installs NVIDIA's
// libraries. Empty without TensorFlow.
std::string PackagesFolder() {
  void* framework =
      dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (!framework) return "";
  char folder[4096] = {};
  const bool found = dlinfo(framework, RTLD_DI_ORIGIN, folder) == 0;
  dlclose(framework);
  return found ? std::string(folder) + "/../nvidia/" : "";
}

void* OpenFile(const std::string& path) {
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

// A library that the process has loaded, that the loader finds, or that lies in
// a pip package. Since CUDA 13 all libraries share one folder there.
void* OpenAny(const Library& library, std::string* why) {
  for (const char* file : library.files) {
    if (void* found = OpenFile(file)) return found;
    if (const char* error = dlerror(); why->empty() && error) *why = error;
    const std::string packages = PackagesFolder();
    if (packages.empty()) continue;
    for (const char* folder : {library.folder, "cu13"}) {
      if (void* found = OpenFile(packages + folder + "/lib/" + file)) {
        return found;
      }
    }
  }
  return nullptr;
}

template <class Functions>
struct Opened {
  Functions functions;
  Status status;
};

template <class Functions>
Status Get(const Opened<Functions>& opened, const Functions** functions) {
  *functions = &opened.functions;
  return opened.status;
}

#define TF_LSTM_OPS_CUDA_SYMBOL(function) \
  {#function, reinterpret_cast<void**>(&all.functions.function)},

}  // namespace

Status Open(const Library& library, const std::vector<Symbol>& symbols) {
  std::string why;
  void* const opened = OpenAny(library, &why);
  if (!opened) {
    return MakeStatus(Code::kFailedPrecondition, "tf_lstm_ops: ", library.name,
                      " is needed on this device and cannot be loaded (", why,
                      "); it comes with ", library.comes_with);
  }
  for (const Symbol& symbol : symbols) {
    *symbol.address = dlsym(opened, symbol.name);
    if (*symbol.address) continue;
    return MakeStatus(Code::kFailedPrecondition, "tf_lstm_ops: ", library.name,
                      " has no function ", symbol.name,
                      ": it is too old; a newer one comes with ",
                      library.comes_with);
  }
  return Status();
}

Status Open(const Driver** driver) {
  static const Opened<Driver> opened = [] {
    Opened<Driver> all;
    all.status = Open({"NVIDIA's driver", {"libcuda.so.1"}, "", "the driver"},
                      {TF_LSTM_OPS_CUDA_DRIVER(TF_LSTM_OPS_CUDA_SYMBOL)});
    if (all.status.ok()) {
      all.status = Check(all.functions, all.functions.cuInit(0), "cuInit");
    }
    return all;
  }();
  return Get(opened, driver);
}

// The oldest first: a driver may reject the code of a newer compiler.
Status Open(const Nvrtc** nvrtc) {
  static const Opened<Nvrtc> opened = [] {
    Opened<Nvrtc> all;
    all.status = Open({"NVRTC, CUDA's run-time compiler,",
                       {"libnvrtc.so.12", "libnvrtc.so.13"},
                       "cuda_nvrtc",
                       "the pip package nvidia-cuda-nvrtc-cu12 or with "
                       "tensorflow[and-cuda]"},
                      {TF_LSTM_OPS_CUDA_NVRTC(TF_LSTM_OPS_CUDA_SYMBOL)});
    return all;
  }();
  return Get(opened, nvrtc);
}

Status Open(const Cublas** cublas) {
  static const Opened<Cublas> opened = [] {
    Opened<Cublas> all;
    all.status = Open({"cuBLAS",
                       {"libcublas.so.12", "libcublas.so.13"},
                       "cublas",
                       "the pip package nvidia-cublas-cu12 or with "
                       "tensorflow[and-cuda]"},
                      {TF_LSTM_OPS_CUDA_CUBLAS(TF_LSTM_OPS_CUDA_SYMBOL)});
    return all;
  }();
  return Get(opened, cublas);
}

Status Check(const Driver& driver, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return Status();
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return MakeStatus(Code::kInternal, "tf_lstm_ops: ", call,
                    " failed: ", name ? name : "an unknown error", ", ",
                    text ? text : "");
}

Status Check(const Nvrtc& nvrtc, nvrtcResult result, const char* call) {
  if (result == NVRTC_SUCCESS) return Status();
  return MakeStatus(Code::kInternal, "tf_lstm_ops: ", call,
                    " failed: ", nvrtc.nvrtcGetErrorString(result));
}

Status Check(const Cublas& cublas, cublasStatus_t result, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return Status();
  return MakeStatus(Code::kInternal, "tf_lstm_ops: ", call,
                    " failed: ", cublas.cublasGetStatusString(result));
}

}  // namespace tf_lstm_ops::cuda
