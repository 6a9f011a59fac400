#include "backends/cpu/memory/call_memory.h"

namespace tf_lstm_ops::cpu {

void* CallMemory::Get(size_t bytes) {
  if (bytes > bytes_ || !buffer_) {
    buffer_.reset();  // so that both need not exist at once
    buffer_ = std::make_unique<AlignedBuffer>(bytes);
    bytes_ = bytes;
  }
  return buffer_->data();
}

}  // namespace tf_lstm_ops::cpu
