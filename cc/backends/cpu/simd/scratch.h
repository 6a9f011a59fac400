// Scratch<T>: hands out the pieces of a pass' scratch memory. Without memory it
// counts only, so that one function says what the pieces are and how large.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_SCRATCH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_SCRATCH_H_

#include <cstdint>

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class Scratch {
 public:
  explicit Scratch(T* memory) : memory_(memory) {}

  T* Take(int64_t size) {
    T* piece = memory_ ? memory_ + used_ : nullptr;
    used_ += size;
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  T* memory_;
  int64_t used_ = 0;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_SCRATCH_H_
