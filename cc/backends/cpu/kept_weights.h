// KeptWeights: packed weights that a kernel keeps for its next call.
//
// The key is a hash of all bytes of the weights, computed in each call. Nothing
// else shows that weights are the same: Python may share a variable's memory
// with another library, which writes to it without a call of TensorFlow.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_KEPT_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_KEPT_WEIGHTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/cpu/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

// The weights of a layer direction in the order in which the engine reads them.
// The object is empty at first. The first call that uses it fills it. Until
// then, concurrent calls pack the weights into memory of their own.
// Thread-safe.
class PackedWeights {
 public:
  bool filled() const;
  // Returns the memory of the packed weights, allocated by the first call.
  // `bytes` must be the same in every call. Throws std::bad_alloc.
  void* Memory(size_t bytes);

 private:
  friend class PackedWeightsUse;
  enum State { kEmpty, kClaimed, kFilled };
  std::atomic<int> state_{kEmpty};
  std::unique_ptr<AlignedBuffer> memory_;
};

// One call's use of packed weights. At most one call at a time fills them. If
// that call ends without Filled, for want of memory, a later one may fill them.
class PackedWeightsUse {
 public:
  explicit PackedWeightsUse(std::shared_ptr<PackedWeights> weights);
  ~PackedWeightsUse();
  PackedWeightsUse(const PackedWeightsUse&) = delete;
  PackedWeightsUse& operator=(const PackedWeightsUse&) = delete;

  // The weights to read, or to fill if they are not filled. Null: the call
  // packs its weights into memory of its own.
  PackedWeights* get() const;
  // Says that get() is filled now.
  void Filled();

 private:
  const std::shared_ptr<PackedWeights> weights_;
  bool fills_ = false;
};

// What weights are known by: their sizes I, H, P and a hash of their bytes.
using WeightsKey = std::array<uint64_t, 4>;

// The packed weights of the last key. Thread-safe.
class KeptWeights {
 public:
  std::shared_ptr<PackedWeights> Find(const WeightsKey& key);

 private:
  std::mutex mutex_;
  WeightsKey key_ = {};
  std::shared_ptr<PackedWeights> weights_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_KEPT_WEIGHTS_H_
