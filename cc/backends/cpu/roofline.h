// The roofline of the processor, measured: peak arithmetic and peak memory
// bandwidth, with which benchmarks compare the engine.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

// Returns floating-point operations per second of float multiply-adds between
// registers, summed over `threads` threads. Takes a sixth of a second.
double MeasureFlops(int threads);

// Returns bytes per second that `threads` threads read together. Each thread
// reads its own part of `bytes` bytes of memory repeatedly. Takes a sixth of a
// second.
double MeasureReadBandwidth(int64_t bytes, int threads);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ROOFLINE_H_
