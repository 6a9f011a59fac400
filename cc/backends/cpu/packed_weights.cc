#include "backends/cpu/packed_weights.h"

namespace tf_lstm_ops::cpu {

bool PackedWeights::filled() const {
  return state_.load(std::memory_order_acquire) == kFilled;
}

bool PackedWeights::Claim() {
  int expected = kEmpty;
  return state_.compare_exchange_strong(expected, kClaimed);
}

void* PackedWeights::Memory(size_t bytes) {
  if (memory_ == nullptr) memory_ = std::make_unique<AlignedBuffer>(bytes);
  return memory_->data();
}

void PackedWeights::Filled() {
  state_.store(kFilled, std::memory_order_release);
}

}  // namespace tf_lstm_ops::cpu
