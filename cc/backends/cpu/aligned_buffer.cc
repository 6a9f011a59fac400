#include "backends/cpu/aligned_buffer.h"

#include <cstdlib>
#include <new>

namespace tf_lstm_ops {

AlignedBuffer::AlignedBuffer(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
  if (rounded < bytes || posix_memalign(&data_, kAlignment, rounded) != 0) {
    throw std::bad_alloc();
  }
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace tf_lstm_ops
