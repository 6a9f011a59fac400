#include "backends/cuda/runtime/device.h"

#include <map>
#include <utility>

#include "backends/cuda/kernels/block.h"

namespace tf_lstm_ops::cuda {
namespace {

CUdeviceptr Address(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

// The handles of a stream. They are never freed, since TensorFlow's contexts
// and streams live as long as the process.
Handles* HandlesOf(CUcontext context, CUstream stream) {
  static std::mutex mutex;
  static auto* const all =
      new std::map<std::pair<CUcontext, CUstream>, std::unique_ptr<Handles>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Handles>& handles = (*all)[{context, stream}];
  if (!handles) handles = std::make_unique<Handles>();
  return handles.get();
}

}  // namespace

Status Device::Make(CUstream stream, std::unique_ptr<Memory> memory,
                    std::unique_ptr<Device>* device) {
  std::unique_ptr<Device> made(new Device);
  TF_LSTM_OPS_RETURN_IF_ERROR(Open(&made->driver_));
  const Driver& driver = *made->driver_;
  made->stream_ = stream;
  made->memory_ = std::move(memory);
  TF_LSTM_OPS_RETURN_IF_ERROR(Check(
      driver, driver.cuCtxGetCurrent(&made->context_), "cuCtxGetCurrent"));
  CUdevice number = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Check(driver, driver.cuCtxGetDevice(&number), "cuCtxGetDevice"));
  const auto attribute = [&](CUdevice_attribute name, int* value) {
    return Check(driver, driver.cuDeviceGetAttribute(value, name, number),
                 "cuDeviceGetAttribute");
  };
  int major = 0, minor = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
  TF_LSTM_OPS_RETURN_IF_ERROR(attribute(
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &made->multiprocessors_));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                &made->shared_bytes_));
  made->compute_capability_ = 10 * major + minor;
  made->handles_ = HandlesOf(made->context_, stream);
  made->lock_ = std::unique_lock<std::mutex>(made->handles_->mutex);
  *device = std::move(made);
  return Status();
}

Status Device::Cublas(cublasHandle_t* handle) const {
  if (!handles_->cublas) {
    const cuda::Cublas* cublas = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(Open(&cublas));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Check(*cublas, cublas->cublasCreate_v2(handle), "cublasCreate"));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Check(*cublas, cublas->cublasSetStream_v2(*handle, stream_),
              "cublasSetStream"));
    handles_->cublas = *handle;
  }
  *handle = handles_->cublas;
  return Status();
}

Status Device::LaunchThreads(CUfunction function, int64_t threads,
                             const void* arguments) const {
  if (threads == 0) return Status();  // CUDA rejects a grid without blocks
  constexpr int64_t kMost = 0x7fffffff;
  const int64_t grid = (threads + kBlock - 1) / kBlock;
  if (grid > kMost) {
    return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: a kernel of ", grid,
                      " blocks is larger than CUDA allows");
  }
  void* parameters[] = {const_cast<void*>(arguments)};
  return Check(
      *driver_,
      driver_->cuLaunchKernel(function, static_cast<unsigned>(grid), 1, 1,
                              kBlock, 1, 1, 0, stream_, parameters, nullptr),
      "cuLaunchKernel");
}

Status Device::AllowSharedBytes(CUfunction function, int shared_bytes) const {
  return Check(*driver_,
               driver_->cuFuncSetAttribute(
                   function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   shared_bytes),
               "cuFuncSetAttribute");
}

Status Device::LaunchGrid(CUfunction function, const LaunchShape& shape,
                          const void* arguments) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(AllowSharedBytes(function, shape.shared_bytes));
  void* parameters[] = {const_cast<void*>(arguments)};
  return Check(
      *driver_,
      driver_->cuLaunchCooperativeKernel(
          function, static_cast<unsigned>(shape.blocks), 1, 1,
          static_cast<unsigned>(shape.threads), 1, 1,
          static_cast<unsigned>(shape.shared_bytes), stream_, parameters),
      "cuLaunchCooperativeKernel");
}

Status Device::LaunchClusters(CUfunction function, const LaunchShape& shape,
                              int64_t cluster, const void* arguments) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(AllowSharedBytes(function, shape.shared_bytes));
  TF_LSTM_OPS_RETURN_IF_ERROR(Check(
      *driver_,
      driver_->cuFuncSetAttribute(
          function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
      "cuFuncSetAttribute"));
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(shape.blocks);
  config.blockDimX = static_cast<unsigned>(shape.threads);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
  config.hStream = stream_;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* parameters[] = {const_cast<void*>(arguments)};
  return Check(
      *driver_,
      driver_->cuLaunchKernelEx(&config, function, parameters, nullptr),
      "cuLaunchKernelEx");
}

Status Device::ZeroBytes(void* data, int64_t bytes) const {
  if (bytes == 0) return Status();
  return Check(*driver_,
               driver_->cuMemsetD8Async(Address(data), 0, bytes, stream_),
               "cuMemsetD8Async");
}

Status Device::ZeroRowBytes(void* data, int64_t rows, int64_t bytes,
                            int64_t pitch) const {
  if (rows * bytes == 0) return Status();
  return Check(
      *driver_,
      driver_->cuMemsetD2D8Async(Address(data), pitch, 0, bytes, rows, stream_),
      "cuMemsetD2D8Async");
}

Status Device::CopyBytes(const void* from, int64_t bytes, void* to) const {
  if (bytes == 0) return Status();
  return Check(
      *driver_,
      driver_->cuMemcpyDtoDAsync_v2(Address(to), Address(from), bytes, stream_),
      "cuMemcpyDtoDAsync");
}

Status Device::ReadBytes(const void* from, int64_t bytes, void* to) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Check(*driver_,
            driver_->cuMemcpyDtoHAsync_v2(to, Address(from), bytes, stream_),
            "cuMemcpyDtoHAsync"));
  return Synchronize();
}

Status Device::Synchronize() const {
  return Check(*driver_, driver_->cuStreamSynchronize(stream_),
               "cuStreamSynchronize");
}

}  // namespace tf_lstm_ops::cuda
