// The functions that the library exports for Python's ctypes.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_C_API_H_
#define TF_LSTM_OPS_BACKENDS_CPU_C_API_H_

#include <cstdint>

#define TF_LSTM_OPS_EXPORT extern "C" __attribute__((visibility("default")))

// Name of an instruction set that this processor has and the library is
// compiled for, the best last; null from `index` on where there are no more.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_instruction_set(int index);

// Name of the one in use.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_selected_instruction_set();

// Number of threads where the session asks for `configured`, 0 for not at all.
TF_LSTM_OPS_EXPORT int tf_lstm_ops_thread_count(int configured);

// y[k] = f(x[k]) for n numbers, as the engine in use computes it.
TF_LSTM_OPS_EXPORT void tf_lstm_ops_sigmoid(const float* x, float* y,
                                            int64_t n);
TF_LSTM_OPS_EXPORT void tf_lstm_ops_tanh(const float* x, float* y, int64_t n);

// What the processor can do at most on so many threads: see ceilings.h. Each
// takes a sixth of a second.
TF_LSTM_OPS_EXPORT double tf_lstm_ops_measure_flops(int threads);
TF_LSTM_OPS_EXPORT double tf_lstm_ops_measure_read_bandwidth(int64_t bytes,
                                                             int threads);

#endif  // TF_LSTM_OPS_BACKENDS_CPU_C_API_H_
