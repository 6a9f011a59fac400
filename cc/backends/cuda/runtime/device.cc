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

Status Device::ZeroBytes(void* data, int64_t bytes) const {
  if (bytes == 0) return Status();
  return Check(*driver_,
               driver_->cuMemsetD8Async(Address(data), 0, bytes, stream_),
               "cuMemsetD8Async");
}

Status Device::CopyBytes(const void* from, int64_t bytes, void* to) const {
  if (bytes == 0) return Status();
  return Check(
      *driver_,
      driver_->cuMemcpyDtoDAsync_v2(Address(to), Address(from), bytes, stream_),
      "cuMemcpyDtoDAsync");
}

Status Device::WriteBytes(const void* from, int64_t bytes, void* to) const {
  if (bytes == 0) return Status();
  return Check(*driver_,
               driver_->cuMemcpyHtoDAsync_v2(Address(to), from, bytes, stream_),
               "cuMemcpyHtoDAsync");
}

}  // namespace tf_lstm_ops::cuda
