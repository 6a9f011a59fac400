// KeptWeights: packed weights that a kernel keeps for its next calls; see
// README.md.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_KEPT_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_KEPT_WEIGHTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/memory/aligned_buffer.h"

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
  // The size of that memory, 0 before the first call.
  size_t bytes() const { return bytes_; }

 private:
  friend class PackedWeightsUse;
  enum State { kEmpty, kClaimed, kFilled };
  std::atomic<int> state_{kEmpty};
  std::atomic<size_t> bytes_{0};
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

// What packed weights are known by: their sizes I, H, P, the cell, the format
// and the engine that packs them, and the hashes of their bytes.
using WeightsKey = std::array<uint64_t, 8>;

// The packed weights of the last keys. There are several because TensorFlow
// runs equal eager layers, which differ in their weights only, by one kernel.
// Kernels that keep the same weights share their memory: a model that is traced
// for two shapes has two kernels of each layer. Thread-safe.
class KeptWeights {
 public:
  static constexpr size_t kSets = 4;
  // The most bytes of all sets but that of the current call.
  static constexpr size_t kBytes = size_t{128} << 20;
  // A set that this many calls in a row have not used is freed. Training leaves
  // such sets behind, by a new value of the weights in each evaluation.
  static constexpr uint64_t kIdleCalls = 64;

  // Returns the weights of a key, empty ones if they are not kept, and frees
  // those that were used longest ago beyond the limits. Calls that still use
  // freed weights share the ownership. Throws std::bad_alloc.
  std::shared_ptr<PackedWeights> Find(const WeightsKey& key);

 private:
  struct Set {
    WeightsKey key;
    std::shared_ptr<PackedWeights> weights;
    uint64_t last_call;
  };

  std::mutex mutex_;
  uint64_t calls_ = 0;
  std::vector<Set> sets_;  // the one that was used last is the first
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_KEPT_WEIGHTS_H_
