// Loops whose times are rates of the processor; see Engine::multiply_add and
// Engine::sum.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_MEASURED_LOOPS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_MEASURED_LOOPS_H_

#include "backends/cpu/simd/vector/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// As many sums as 16 registers hold: they hide the latency of two units.
inline float MultiplyAdd(int64_t rounds, int64_t* flops) {
  constexpr int kSums = 12;
  using V = VecT<float>;
  V sum[kSums];  // each begins otherwise, or compilers would keep one
  for (int c = 0; c < kSums; ++c) sum[c] = Broadcast(static_cast<float>(c));
  const V factor = Broadcast(0.5f), add = Broadcast(1.0f);
  for (int64_t k = 0; k < rounds; ++k) {
    for (V& one : sum) one = Fma(one, factor, add);
  }
  *flops = 2 * rounds * kSums * kLanes<float>;
  V total = {};
  for (const V& one : sum) total = total + one;
  return total[0];
}

inline float Sum(const float* x, int64_t n) {
  constexpr int kSums = 8;
  constexpr int kL = kLanes<float>;
  VecT<float> sum[kSums] = {};
  for (int64_t k = 0; k + kSums * kL <= n; k += kSums * kL) {
    for (int c = 0; c < kSums; ++c) sum[c] = sum[c] + Load(x + k + c * kL);
  }
  VecT<float> total = {};
  for (const VecT<float>& one : sum) total = total + one;
  return total[0];
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_MEASURED_LOOPS_H_
