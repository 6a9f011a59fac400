// A fake libcuda.so.1 whose device is the host: work runs where it is launched,
// in stream order. A module is a library that the fake NVRTC made; its image is
// the file.
//
// Environment variable: FAKE_NO_DEVICE=1, a machine without a GPU.
#include "backends/cuda/api/driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

struct CUctx_st {};
struct CUmod_st {
  void* library;
};
struct CUfunc_st {
  void (*run)(const void* arguments, unsigned grid, unsigned block);
};

namespace {

constexpr auto kInvalidValue = static_cast<CUresult>(1);
constexpr auto kNoDevice = static_cast<CUresult>(100);
constexpr auto kInvalidImage = static_cast<CUresult>(200);
constexpr auto kNotFound = static_cast<CUresult>(500);
constexpr unsigned kMostThreads = 1024;

CUctx_st contexts[2];

template <class T = char>
T* Pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

// An ELF file ends with its table of sections.
size_t SizeOfImage(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == kNoDevice ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == kNoDevice ? "no CUDA-capable device is detected"
                             : "misuse of the fake driver";
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return kInvalidValue;
  return std::getenv("FAKE_NO_DEVICE") ? kNoDevice : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute name,
                              CUdevice device) {
  if (device != 0) return kInvalidValue;
  const std::map<int, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0}};
  const auto found = values.find(name);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* current) {
  static std::atomic<int> calls{0};
  *current = &contexts[std::getenv("FAKE_TWO_CONTEXTS") ? calls++ % 2 : 0];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const size_t size = SizeOfImage(image);
  if (size == 0) return kInvalidImage;
  const int file = memfd_create("module", 0);
  if (write(file, image, size) != static_cast<ssize_t>(size)) {
    return kInvalidImage;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return kInvalidImage;
  *module = new CUmod_st{library};
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                             const char* name) {
  static std::mutex mutex;
  static std::map<void*, CUfunc_st> functions;  // by address
  void* const address = dlsym(module->library, name);
  if (!address) return kNotFound;
  const std::lock_guard<std::mutex> lock(mutex);
  CUfunc_st& found = functions[address];
  if (!found.run) {
    found.run = reinterpret_cast<decltype(found.run)>(address);
  }
  *function = &found;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (!stream || !to || !from) return kInvalidValue;
  std::memcpy(Pointer(to), Pointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                              CUstream stream) {
  if (!stream || !to || !from) return kInvalidValue;
  std::memcpy(Pointer(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  if (!stream || !to) return kInvalidValue;
  std::memset(Pointer(to), value, count);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
                        unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void** parameters, void** extra) {
  const bool has_one_axis =
      grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (!function || !stream || !has_one_axis || grid_x == 0 || block_x == 0 ||
      block_x > kMostThreads || shared_bytes != 0 || !parameters || extra) {
    return kInvalidValue;
  }
  function->run(parameters[0], grid_x, block_x);
  return CUDA_SUCCESS;
}

}  // extern "C"
