// Scratch<T>: divides the scratch memory of a pass into arrays. Without memory
// it only counts elements, so that one function defines the arrays and their
// sizes.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MEMORY_SCRATCH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MEMORY_SCRATCH_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(T* memory) : memory_(memory) {}

  // Arrays begin at multiples of a cache line, as the memory does.
  T* Take(int64_t size) {
    constexpr int64_t kLine = 64 / sizeof(T);
    T* array = memory_ ? memory_ + used_ : nullptr;
    used_ += (size + kLine - 1) / kLine * kLine;
    return array;
  }
  int64_t used() const { return used_; }

 private:
  T* memory_;
  int64_t used_ = 0;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MEMORY_SCRATCH_H_
