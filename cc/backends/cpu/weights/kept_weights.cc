#include "backends/cpu/weights/kept_weights.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <utility>

namespace tf_lstm_ops::cpu {
namespace {

// The weights that any kernel of the process keeps, or new ones.
std::shared_ptr<PackedWeights> SharedWeights(const WeightsKey& key) {
  struct Table {
    std::mutex mutex;
    std::map<WeightsKey, std::weak_ptr<PackedWeights>> weights;
  };
  // Never destroyed: kernels may outlive static objects.
  static Table& table = *new Table;
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (auto it = table.weights.begin(); it != table.weights.end();) {
    it = it->second.expired() ? table.weights.erase(it) : std::next(it);
  }
  std::weak_ptr<PackedWeights>& found = table.weights[key];
  std::shared_ptr<PackedWeights> weights = found.lock();
  if (!weights) found = weights = std::make_shared<PackedWeights>();
  return weights;
}

}  // namespace

bool PackedWeights::filled() const {
  return state_.load(std::memory_order_acquire) == kFilled;
}

void* PackedWeights::Memory(size_t bytes) {
  assert(memory_ == nullptr || bytes == bytes_);
  if (memory_ == nullptr) memory_ = std::make_unique<AlignedBuffer>(bytes);
  bytes_ = bytes;
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
  auto set = std::find_if(sets_.begin(), sets_.end(),
                          [&](const Set& s) { return s.key == key; });
  if (set == sets_.end()) {
    set = sets_.insert(set, {key, SharedWeights(key), 0});
  }
  set->last_call = ++calls_;
  std::rotate(sets_.begin(), set, set + 1);
  size_t kept = 1, bytes = 0;
  for (; kept < std::min(sets_.size(), kSets); ++kept) {
    bytes += sets_[kept].weights->bytes();
    if (bytes > kBytes || calls_ - sets_[kept].last_call > kIdleCalls) break;
  }
  sets_.erase(sets_.begin() + static_cast<std::ptrdiff_t>(kept), sets_.end());
  return sets_.front().weights;
}

}  // namespace tf_lstm_ops::cpu
