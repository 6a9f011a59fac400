// Device: what a call has of the GPU. All work goes to the stream that the
// caller computes on, all memory is the caller's; nothing waits for the device
// but what says so.
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

// The libraries' handles for a stream, made when first asked for and kept. One
// call at a time has them.
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

  virtual Status Allocate(int64_t bytes, void** data) = 0;
  virtual size_t blocks() const = 0;  // allocated and not freed
  // Frees all blocks but the first `blocks`.
  virtual void FreeAfter(size_t blocks) = 0;
};

class Device {
 public:
  // Of the thread's current context. Errors: FailedPrecondition where there is
  // no driver; Internal.
  static Status Make(CUstream stream, std::unique_ptr<Memory> memory,
                     std::unique_ptr<Device>* device);

  CUstream stream() const { return stream_; }
  CUcontext context() const { return context_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0
  int multiprocessors() const { return multiprocessors_; }
  int shared_bytes() const { return shared_bytes_; }  // of a block, at most
  const Driver& driver() const { return *driver_; }
  Handles& handles() const { return *handles_; }
  Status Cublas(cublasHandle_t* handle) const;

  Memory& memory() const { return *memory_; }
  // `size` numbers; not written.
  template <class T>
  Status Allocate(int64_t size, T** data) const {
    void* memory = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        memory_->Allocate(size * static_cast<int64_t>(sizeof(T)), &memory));
    *data = static_cast<T*>(memory);
    return Status();
  }
  // `size` zeros from `data` on; a size of 0 does nothing, here and below.
  template <class T>
  Status Zero(T* data, int64_t size) const {
    return ZeroBytes(data, size * static_cast<int64_t>(sizeof(T)));
  }
  // `rows` rows of `size` zeros, `stride` apart.
  template <class T>
  Status ZeroRows(T* data, int64_t rows, int64_t size, int64_t stride) const {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    return ZeroRowBytes(data, rows, size * kBytes, stride * kBytes);
  }
  template <class T>
  Status Copy(const T* from, int64_t size, T* to) const {
    return CopyBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
  }

  // Waits for the device.
  template <class T>
  Status CopyToHost(const T* from, int64_t size, T* to) const {
    return ReadBytes(from, size * static_cast<int64_t>(sizeof(T)), to);
  }

  // Runs a kernel of one parameter, `arguments`, on at least `threads` threads,
  // numbered blockIdx.x * blockDim.x + threadIdx.x.
  template <class Arguments>
  Status Launch(CUfunction function, int64_t threads,
                const Arguments& arguments) const {
    return LaunchThreads(function, threads, &arguments);
  }
  // `grid` blocks of `block` threads with so much shared memory, all at the
  // same time: they may wait for each other.
  template <class Arguments>
  Status LaunchTogether(CUfunction function, int64_t grid, int block,
                        int shared_bytes, const Arguments& arguments) const {
    return LaunchCooperative(function, grid, block, shared_bytes, &arguments);
  }
  // So many clusters of blocks, the blocks of each at the same time.
  template <class Arguments>
  Status LaunchInClusters(CUfunction function, int64_t clusters, int64_t size,
                          int block, int shared_bytes,
                          const Arguments& arguments) const {
    return LaunchClusters(function, clusters, size, block, shared_bytes,
                          &arguments);
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
  Status LaunchCooperative(CUfunction function, int64_t grid, int block,
                           int shared_bytes, const void* arguments) const;
  Status LaunchClusters(CUfunction function, int64_t clusters, int64_t size,
                        int block, int shared_bytes,
                        const void* arguments) const;
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
