#include "backends/cpu/kept_weights.h"

#include <utility>

namespace tf_lstm_ops::cpu {

bool PackedWeights::filled() const {
  return state_.load(std::memory_order_acquire) == kFilled;
}

void* PackedWeights::Memory(size_t bytes) {
  if (memory_ == nullptr) memory_ = std::make_unique<AlignedBuffer>(bytes);
  return memory_->data();
}

PackedWeightsUse::PackedWeightsUse(std::shared_ptr<PackedWeights> weights)
    : weights_(std::move(weights)) {
  int expected = PackedWeights::kEmpty;
  fills_ = weights_ && weights_->state_.compare_exchange_strong(
                           expected, PackedWeights::kClaimed);
}

PackedWeightsUse::~PackedWeightsUse() {
  if (fills_) weights_->state_.store(PackedWeights::kEmpty);
}

PackedWeights* PackedWeightsUse::get() const {
  return weights_ && (fills_ || weights_->filled()) ? weights_.get() : nullptr;
}

void PackedWeightsUse::Filled() {
  if (!fills_) return;
  weights_->state_.store(PackedWeights::kFilled, std::memory_order_release);
  fills_ = false;
}

std::shared_ptr<PackedWeights> KeptWeights::Find(const WeightsKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (weights_ == nullptr || key != key_) {
    weights_ = std::make_shared<PackedWeights>();
    key_ = key;
  }
  return weights_;
}

}  // namespace tf_lstm_ops::cpu
