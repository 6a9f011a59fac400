// PackedWeights: a layer's weights in the order in which the engine reads them,
// kept between calls.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "backends/cpu/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

// Empty at first. The first call that is handed it fills it; calls at the same
// time do without. Whoever owns it sees to it that the weights stay the same.
class PackedWeights {
 public:
  bool filled() const;
  // Whether the caller may fill it. If so, it gets Memory and ends with Filled.
  bool Claim();
  void* Memory(size_t bytes);  // as many in every call. Throws std::bad_alloc.
  void Filled();

 private:
  enum State { kEmpty, kClaimed, kFilled };
  std::atomic<int> state_{kEmpty};
  std::unique_ptr<AlignedBuffer> memory_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PACKED_WEIGHTS_H_
