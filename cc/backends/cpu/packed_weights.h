// PackedWeights: the weights of a layer direction in the order in which the
// engine reads them, kept between calls.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "backends/cpu/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

// Empty at first. The first call that gets the object fills it. Concurrent calls
// pack their own weights meanwhile. The owner guarantees that the weights do not
// change. Thread-safe.
class PackedWeights {
 public:
  bool filled() const;
  // Returns true to the caller that fills the object: it calls Memory, then
  // Filled.
  bool Claim();
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
