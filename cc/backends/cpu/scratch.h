// Scratch<T>: divides the scratch memory of a pass into pieces. Without memory
// it only counts elements, so that one function defines the pieces and their
// sizes.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SCRATCH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SCRATCH_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(T* memory) : memory_(memory) {}

  // Pieces begin at multiples of a cache line, as the memory does.
  T* Take(int64_t size) {
    constexpr int64_t kLine = 64 / sizeof(T);
    T* piece = memory_ ? memory_ + used_ : nullptr;
    used_ += (size + kLine - 1) / kLine * kLine;
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  T* memory_;
  int64_t used_ = 0;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SCRATCH_H_
