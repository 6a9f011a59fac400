// Loops over elements, of which the compiler makes vectors.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_ELEMENTWISE_H_
#define TF_LSTM_OPS_SESSION_LAYERS_ELEMENTWISE_H_

#include <cstdint>

namespace tf_lstm_ops::session {

// y[k] = f(x[k], k) for n elements. y is x, or does not overlap it: two loops,
// since the compiler's test for an overlap would fail where y is x.
template <class F>
void Map(const float* x, int64_t n, float* y, const F& f) {
  if (x == y) {
    for (int64_t k = 0; k < n; ++k) y[k] = f(y[k], k);
  } else {
    const float* __restrict from = x;
    float* __restrict to = y;
    for (int64_t k = 0; k < n; ++k) to[k] = f(from[k], k);
  }
}

// z = PositivePart(z) + NegativePart(z), also for NaN. A sum of both is faster
// than a condition, which compilers make no vectors of.
inline float PositivePart(float z) { return z < 0 ? 0 : z; }
inline float NegativePart(float z) { return z > 0 ? 0 : z; }

// A NaN in a or b is passed on.
inline float Larger(float a, float b) { return (b > a) | (b != b) ? b : a; }
inline float Smaller(float a, float b) { return (b < a) | (b != b) ? b : a; }

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_ELEMENTWISE_H_
