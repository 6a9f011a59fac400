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

// Device memory of one call, in stream order: once a block is freed, later work
// of the stream may reuse it, while work that was enqueued before still sees
// it. The destructor frees all blocks.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Errors: ResourceExhausted.
  virtual Status Allocate(int64_t bytes, void** data) = 0;
  virtual size_t blocks() const = 0;  // allocated and not freed
  // Frees all blocks but the first `blocks`.
  virtual void FreeAfter(size_t blocks) = 0;
};

// The sizes of a launch.
struct LaunchShape {
  int64_t blocks = 0;
  int threads = 0;       // of a block
  int shared_bytes = 0;  // of a block
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
  int multiprocessors() const { return multiprocessors_; }
  // The largest shared memory of a block, in bytes.
  int shared_bytes() const { return shared_bytes_; }
  const Driver& driver() const { return *driver_; }
  Handles& handles() const { return *handles_; }
  // The stream's cuBLAS handle, which the process owns. Errors:
  // FailedPrecondition without cuBLAS; Internal.
  Status Cublas(cublasHandle_t* handle) const;

  Memory& memory() const { return *memory_; }
  // Allocates `size` uninitialised elements, which memory() owns. Errors:
  // ResourceExhausted.
  template <class T>
  Status Allocate(int64_t size, T** data) const {
    void* memory = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        memory_->Allocate(size * static_cast<int64_t>(sizeof(T)), &memory));
    *data = static_cast<T*>(memory);
    return Status();
  }
  // Sets `size` elements to zero. Zero, ZeroRows and Copy do nothing if there
  // are no elements.
  template <class T>
  Status Zero(T* data, int64_t size) const {
    return ZeroBytes(data, size * static_cast<int64_t>(sizeof(T)));
  }
  // Sets `rows` rows of `size` elements to zero. Rows begin `stride` elements
  // apart.
  template <class T>
  Status ZeroRows(T* data, int64_t rows, int64_t size, int64_t stride) const {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    return ZeroRowBytes(data, rows, size * kBytes, stride * kBytes);
  }
  // Copies `size` elements. `from` and `to` must not overlap.
  template <class T>
  Status Copy(const T* from, int64_t size, T* to) const {
    return CopyBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
  }

  // Waits for the device. Errors: Internal where earlier work failed.
  Status Synchronize() const;
  // Copies `size` elements to host memory. Waits for the device.
  template <class T>
  Status CopyToHost(const T* from, int64_t size, T* to) const {
    return ReadBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
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
  // Launches blocks that may synchronise with each other.
  template <class Arguments>
  Status LaunchCooperative(CUfunction function, const LaunchShape& shape,
                           const Arguments& arguments) const {
    return LaunchGrid(function, shape, &arguments);
  }
  // Launches clusters of `cluster` blocks; the blocks of a cluster may
  // synchronise.
  template <class Arguments>
  Status LaunchInClusters(CUfunction function, const LaunchShape& shape,
                          int64_t cluster, const Arguments& arguments) const {
    return LaunchClusters(function, shape, cluster, &arguments);
  }

 private:
  Device() = default;

  Status ZeroBytes(void* data, int64_t bytes) const;
  Status ZeroRowBytes(void* data, int64_t rows, int64_t bytes,
                      int64_t pitch) const;
  Status CopyBytes(const void* from, int64_t bytes, void* to) const;
  Status ReadBytes(const void* from, int64_t bytes, void* to) const;
  Status LaunchThreads(CUfunction function, int64_t threads,
                       const void* arguments) const;
  Status LaunchGrid(CUfunction function, const LaunchShape& shape,
                    const void* arguments) const;
  Status LaunchClusters(CUfunction function, const LaunchShape& shape,
                        int64_t cluster, const void* arguments) const;
  Status AllowSharedBytes(CUfunction function, int shared_bytes) const;

  const Driver* driver_ = nullptr;
  CUstream stream_ = nullptr;
  CUcontext context_ = nullptr;
  std::unique_ptr<Memory> memory_;
  int compute_capability_ = 0;
  int multiprocessors_ = 0;
  int shared_bytes_ = 0;
  Handles* handles_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

// Frees, when it goes out of scope, the memory that was allocated since its
// construction.
class Scratch {
 public:
  explicit Scratch(const Device& device)
      : memory_(device.memory()), blocks_(memory_.blocks()) {}
  ~Scratch() { memory_.FreeAfter(blocks_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  Memory& memory_;
  const size_t blocks_;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_DEVICE_H_
