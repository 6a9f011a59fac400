// Measurements of the roofline of the processor: peak arithmetic rate and peak
// memory bandwidth. Benchmarks compare the engine with them. Both take at least
// one thread, and throw std::bad_alloc or std::system_error.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_ROOFLINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_ROOFLINE_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

// Returns the floating-point operations per second of float multiply-adds
// between registers, summed over `threads` threads. A measurement takes about a
// sixth of a second.
double MeasureFlops(int threads);

// Returns the bytes per second that `threads` threads read together. Each
// thread repeatedly reads its own part of `bytes` bytes of memory. A
// measurement takes about a sixth of a second.
double MeasureReadBandwidth(int64_t bytes, int threads);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_ROOFLINE_H_
