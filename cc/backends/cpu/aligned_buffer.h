// AlignedBuffer: scratch memory of one call.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ALIGNED_BUFFER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>

namespace tf_lstm_ops {

// 64-byte aligned; of 2 MiB and more on huge pages where the system has them.
// Such large ones are kept for later calls, up to kKeptBytes in all: fresh
// pages cost more to get than to use. Throws std::bad_alloc, which the kernels'
// base class turns into a ResourceExhausted error. Not a template of the
// element type, so that code compiled for one instruction set instantiates
// nothing another may use.
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

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ALIGNED_BUFFER_H_
