// Device: what one call uses of a GPU: a stream, memory, kernel launches, and
// the handles of libraries. All work is enqueued on the caller's stream. A
// function waits for the device only if its comment says so. Its errors are
// Internal unless its comment names others.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_DEVICE_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/cuda/runtime/libraries.h"
#include "core/status.h"

struct cudnnContext;

namespace tf_lstm_ops::cuda {

// The libraries' handles for a stream, created on first use and kept for the
// process. A call holds the mutex while it enqueues work.
struct Handles {
  std::mutex mutex;
  cublasContext* cublas = nullptr;
  cudnnContext* cudnn = nullptr;
};

// Device memory of one call. The destructor frees it, in stream order: later
// work of the stream may reuse it, work that was enqueued before still sees
// it.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Errors: ResourceExhausted.
  virtual Status Allocate(int64_t bytes, void** data) = 0;
};

class Device {
 public:
  // Makes the device of the thread's current context. `stream` must outlive it.
  // Blocks until no other Device of the same stream exists, because calls share
  // the stream's handles. Errors: FailedPrecondition without a driver;
  // Internal.
  static Status Make(CUstream stream, std::unique_ptr<Memory> memory,
                     std::unique_ptr<Device>* device);

  CUstream stream() const { return stream_; }
  CUcontext context() const { return context_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0
  const Driver& driver() const { return *driver_; }
  Handles& handles() const { return *handles_; }
  // The stream's cuBLAS handle, which the process owns. Errors:
  // FailedPrecondition without cuBLAS; Internal.
  Status Cublas(cublasHandle_t* handle) const;

  // Allocates `size` uninitialised elements, which the Memory owns. Errors:
  // ResourceExhausted.
  template <class T>
  Status Allocate(int64_t size, T** data) const {
    void* memory = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        memory_->Allocate(size * static_cast<int64_t>(sizeof(T)), &memory));
    *data = static_cast<T*>(memory);
    return Status();
  }
  // Sets `size` elements to zero. Zero and Copy do nothing if there are no
  // elements.
  template <class T>
  Status Zero(T* data, int64_t size) const {
    return ZeroBytes(data, size * static_cast<int64_t>(sizeof(T)));
  }
  // Copies `size` elements. `from` and `to` must not overlap.
  template <class T>
  Status Copy(const T* from, int64_t size, T* to) const {
    return CopyBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
  }

  // Copies `size` elements of the host, which may change after the call.
  template <class T>
  Status CopyFromHost(const T* from, int64_t size, T* to) const {
    return WriteBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
  }

  // Launches a kernel with the parameter `arguments`, which is copied, on at
  // least `threads` threads. The index of a thread is blockIdx.x * blockDim.x +
  // threadIdx.x. Does nothing if `threads` is 0. Errors: Unimplemented for more
  // blocks than CUDA allows; Internal.
  template <class Arguments>
  Status Launch(CUfunction function, int64_t threads,
                const Arguments& arguments) const {
    return LaunchThreads(function, threads, &arguments);
  }

 private:
  Device() = default;

  Status ZeroBytes(void* data, int64_t bytes) const;
  Status CopyBytes(const void* from, int64_t bytes, void* to) const;
  Status WriteBytes(const void* from, int64_t bytes, void* to) const;
  Status LaunchThreads(CUfunction function, int64_t threads,
                       const void* arguments) const;

  const Driver* driver_ = nullptr;
  CUstream stream_ = nullptr;
  CUcontext context_ = nullptr;
  std::unique_ptr<Memory> memory_;
  int compute_capability_ = 0;
  Handles* handles_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_DEVICE_H_
