// What the processor can do at most, measured: the ceilings that benchmarks
// compare the engine with.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

// Floating-point operations a second of float multiply-adds between registers,
// on so many threads together.
double MeasureFlops(int threads);

// Bytes a second that the threads together read, over and over, from `bytes` of
// memory, of which each has its own part.
double MeasureReadBandwidth(int64_t bytes, int threads);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_
