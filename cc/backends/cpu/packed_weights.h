// PackedWeights: the weights of a layer direction in the order in which the
// engine reads them, stored for later calls.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "backends/cpu/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

// The object is empty at first. The first call that uses it fills it. Until
// then, concurrent calls pack the weights into memory of their own. The owner
// guarantees that the weights do not change. Thread-safe.
class PackedWeights {
 public:
  bool filled() const;
  // Returns true to one caller, which must fill the object: it calls Memory,
  // writes the weights, then calls Filled. Returns false to all others.
  bool Claim();
  // Returns the memory of the packed weights, allocated by the first call.
  // `bytes` must be the same in every call. Throws std::bad_alloc.
  void* Memory(size_t bytes);
  void Filled();

 private:
  enum State { kEmpty, kClaimed, kFilled };
  std::atomic<int> state_{kEmpty};
  std::unique_ptr<AlignedBuffer> memory_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_
