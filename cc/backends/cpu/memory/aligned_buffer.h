// AlignedBuffer: scratch memory of one call.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MEMORY_ALIGNED_BUFFER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MEMORY_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>

namespace tf_lstm_ops {

// Uninitialised memory, aligned to 64 bytes, which the object owns. Buffers of
// 2 MiB and more use huge pages where the system has them. Later calls reuse
// the memory of such buffers, up to kKeptBytes in total, because the first
// access to a new page is slow. They also reuse the memory of smaller buffers,
// which saves the time of an allocation in a short call. The constructor throws
// std::bad_alloc, which the kernels' base class turns into a ResourceExhausted
// error. The class is not a template of the element type, so that code compiled
// for one instruction set instantiates nothing that another one may use.
class AlignedBuffer {
 public:
  static constexpr size_t kKeptBytes = size_t{128} << 20;

  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MEMORY_ALIGNED_BUFFER_H_
