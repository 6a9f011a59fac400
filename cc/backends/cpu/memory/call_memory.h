// CallMemory: memory that a caller keeps between calls.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MEMORY_CALL_MEMORY_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MEMORY_CALL_MEMORY_H_

#include <cstddef>
#include <memory>

#include "backends/cpu/memory/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

// It grows to the largest size that was asked for. One thread at a time may use
// it.
class CallMemory {
 public:
  // Returns uninitialised memory of at least `bytes`, aligned to 64 bytes. It
  // is valid until the next call. Throws std::bad_alloc.
  void* Get(size_t bytes);

 private:
  size_t bytes_ = 0;
  std::unique_ptr<AlignedBuffer> buffer_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MEMORY_CALL_MEMORY_H_
