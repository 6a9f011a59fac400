// The entry points of a backend: a recurrent layer forward and backward.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_RNN_H_
#define TF_LSTM_OPS_BACKENDS_CPU_RNN_H_

#include <vector>

#include "backends/cpu/packed_weights.h"
#include "core/rnn.h"

namespace tf_lstm_ops::cpu {

// T is float or double. On at most `threads` threads; fewer where the work is
// small. The result does not depend on their number. Throws std::bad_alloc.
// `packed` may be null: nothing is kept.
template <class T>
void Forward(const RnnForward<T>& args, int threads,
             PackedWeights* packed = nullptr);
template <class T>
void Backward(const RnnBackward<T>& args, int threads);

// Independent layers, such as the two directions of one, at most kMaxTogether:
// side by side where that is faster. Backward, all but the first may add to the
// first one's dx.
constexpr int kMaxTogether = 2;
template <class T>
void ForwardAll(const std::vector<RnnForward<T>>& layers, int threads);
template <class T>
void BackwardAll(const std::vector<RnnBackward<T>>& layers, int threads);

// `configured` threads, or where that is 0 the number in the environment
// variable TF_NUM_INTRAOP_THREADS, or that of the processors the process may
// use.
int ThreadCount(int configured);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_RNN_H_
