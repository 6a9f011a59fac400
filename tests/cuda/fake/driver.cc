// A fake libcuda.so.1 whose device is the host: work runs where it is launched,
// in stream order. A module is a library that the fake NVRTC made; its image is
// the file.
//
// Environment variables:
//   FAKE_NO_DEVICE=1      a machine without a GPU
//   FAKE_MULTIPROCESSORS  their number
//   FAKE_IS_SHARED=1      no cooperative launch fits
//   FAKE_FEW_CLUSTERS     no cluster of more than 8 blocks fits
//   FAKE_CAPTURES=1       every stream is being captured
//   FAKE_FASTEST          the number of the one Algorithm that is fast
#include "backends/cuda/api/driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

struct CUctx_st {};
struct CUmod_st {
  void* library;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
};
struct CUfunc_st {
  void (*run)(const void* arguments, unsigned grid, unsigned block,
              unsigned shared_bytes, unsigned cluster);
  bool is_cooperative;
  bool may_be_large_cluster;
  bool is_step;  // computes steps of a layer
  unsigned most_shared_bytes;
};

namespace {

constexpr auto kInvalidValue = static_cast<CUresult>(1);
constexpr auto kNoDevice = static_cast<CUresult>(100);
constexpr auto kInvalidImage = static_cast<CUresult>(200);
constexpr auto kNotFound = static_cast<CUresult>(500);
constexpr auto kInvalidClusterSize = static_cast<CUresult>(912);
constexpr auto kCooperativeTooLarge = static_cast<CUresult>(720);
constexpr unsigned kMostThreads = 1024;
constexpr int kSharedBytes = 48 * 1024, kMostSharedBytes = 227 * 1024;

CUctx_st context;
std::atomic<int> cooperative_launches = 0, cluster_launches = 0;

int Multiprocessors() {
  const char* text = std::getenv("FAKE_MULTIPROCESSORS");
  return text ? std::atoi(text) : 132;
}

template <class T = char>
T* Pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

void Run(const CUfunc_st& function, const void* arguments, unsigned grid,
         unsigned block, unsigned shared_bytes, unsigned cluster = 0) {
  // The numbers of the Algorithms of the package's own kernels.
  const int algorithm = !function.is_cooperative ? 4 : cluster == 0 ? 5 : 6;
  const char* fastest = std::getenv("FAKE_FASTEST");
  if (function.is_step && fastest && std::atoi(fastest) != algorithm) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  function.run(arguments, grid, block, shared_bytes, cluster);
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

// The numbers of launches, for tests.
int fake_cooperative_launches() { return cooperative_launches; }
int fake_cluster_launches() { return cluster_launches; }

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
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, Multiprocessors()},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kMostSharedBytes},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0}};
  const auto found = values.find(name);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* current) {
  *current = &context;
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
    const std::string marker = std::string(name) + "_is_cooperative";
    found.is_cooperative = dlsym(module->library, marker.c_str()) != nullptr;
    found.is_step = std::string(name).find("ward_step") != std::string::npos;
    found.most_shared_bytes = kSharedBytes;
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

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (!stream || !to || !from) return kInvalidValue;
  std::memcpy(to, Pointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  return stream ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  if (!stream || !to) return kInvalidValue;
  std::memset(Pointer(to), value, count);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value,
                           size_t width, size_t height, CUstream stream) {
  if (!stream || !to || (height > 1 && pitch < width)) return kInvalidValue;
  for (size_t row = 0; row < height; ++row) {
    std::memset(Pointer(to) + row * pitch, value, width);
  }
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
      block_x > kMostThreads || shared_bytes != 0 || !parameters || extra ||
      function->is_cooperative) {
    return kInvalidValue;
  }
  Run(*function, parameters[0], grid_x, block_x, shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute name,
                            int value) {
  if (function && name == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    function->may_be_large_cluster = value != 0;
    return CUDA_SUCCESS;
  }
  if (!function || name != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      value < 0 || value > kMostSharedBytes) {
    return kInvalidValue;
  }
  function->most_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream,
                                   void** parameters) {
  const bool has_one_axis =
      grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (!function || !stream || !has_one_axis || grid_x == 0 || block_x == 0 ||
      block_x > kMostThreads || !parameters || !function->is_cooperative ||
      shared_bytes > function->most_shared_bytes) {
    return kInvalidValue;
  }
  if (std::getenv("FAKE_IS_SHARED")) return kCooperativeTooLarge;
  if (static_cast<int>(grid_x) > Multiprocessors()) return kCooperativeTooLarge;
  ++cooperative_launches;
  Run(*function, parameters[0], grid_x, block_x, shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                          void** parameters, void** extra) {
  const bool has_one_axis = config->gridDimY == 1 && config->gridDimZ == 1 &&
                            config->blockDimY == 1 && config->blockDimZ == 1;
  if (!function || !config->hStream || !has_one_axis || config->gridDimX == 0 ||
      config->blockDimX == 0 || config->blockDimX > kMostThreads ||
      !parameters || extra || !function->is_cooperative ||
      config->sharedMemBytes > function->most_shared_bytes ||
      config->numAttrs != 1 ||
      config->attrs->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    return kInvalidValue;
  }
  const auto& cluster = config->attrs->value.clusterDim;
  const bool may_be_large =
      function->may_be_large_cluster && !std::getenv("FAKE_FEW_CLUSTERS");
  const unsigned most = may_be_large ? 16 : 8;
  if (cluster.x == 0 || cluster.x > most || cluster.y != 1 || cluster.z != 1 ||
      config->gridDimX % cluster.x != 0) {
    return kInvalidClusterSize;
  }
  ++cluster_launches;
  Run(*function, parameters[0], config->gridDimX, config->blockDimX,
      config->sharedMemBytes, cluster.x);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  if (!stream) return kInvalidValue;
  const bool captures = std::getenv("FAKE_CAPTURES") != nullptr;
  *status = static_cast<CUstreamCaptureStatus>(captures ? 1 : 0);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  if (flags != 0) return kInvalidValue;
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (!event || !stream) return kInvalidValue;
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  return event ? CUDA_SUCCESS : kInvalidValue;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  if (!start || !end) return kInvalidValue;
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

}  // extern "C"
