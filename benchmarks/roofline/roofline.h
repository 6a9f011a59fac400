// Measurements of the roofline of the processor: peak arithmetic rate and peak
// memory bandwidth. Both take at least one thread, and the loop of an
// instruction set, as in Engine. They throw std::bad_alloc or
// std::system_error.
#ifndef TF_LSTM_OPS_BENCHMARKS_ROOFLINE_ROOFLINE_H_
#define TF_LSTM_OPS_BENCHMARKS_ROOFLINE_ROOFLINE_H_

#include <cstdint>

namespace roofline {

// Returns the floating-point operations per second of float multiply-adds
// between registers, summed over `threads` threads. A measurement takes about a
// sixth of a second.
double MeasureFlops(float (*multiply_add)(int64_t rounds, int64_t* flops),
                    int threads);

// Returns the bytes per second that `threads` threads read together. Each
// thread repeatedly reads its own part of `bytes` bytes of memory. A
// measurement takes about a sixth of a second.
double MeasureReadBandwidth(float (*sum)(const float* x, int64_t n),
                            int64_t bytes, int threads);

}  // namespace roofline

#endif  // TF_LSTM_OPS_BENCHMARKS_ROOFLINE_ROOFLINE_H_
