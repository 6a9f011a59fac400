// The functions of the CPU backend that Python calls through ctypes. They throw
// nothing.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FOR_PYTHON_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FOR_PYTHON_H_

#include <cstdint>

#if defined(_WIN32)
#define TF_LSTM_OPS_EXPORT extern "C" __declspec(dllexport)
#else
#define TF_LSTM_OPS_EXPORT extern "C" __attribute__((visibility("default")))
#endif

// Returns the name of instruction set `index`, from 0 on, of those that the
// library is compiled for and this processor has. The best one is last. Returns
// null where `index` is out of range. The strings live as long as the process.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_instruction_set(int index);

// Returns the name of the instruction set in use.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_selected_instruction_set();

// Returns the number of threads of a call. `configured` is the session's
// setting, 0 if not set. Returns 1 where there is no memory to find it out.
TF_LSTM_OPS_EXPORT int tf_lstm_ops_thread_count(int configured);

// The caches by which the schedules divide work, in bytes: 1 and 2 for a
// processor's part of L1 and L2, 3 for the shared one; see caches.h. 0 for
// other values, and where there is no memory to find it out.
TF_LSTM_OPS_EXPORT int64_t tf_lstm_ops_cache_size(int level);

// Nanoseconds that were measured on this processor: 0 for a multiply-add of
// vectors, 1 for a byte of the L2 cache, 2 for what a byte takes longer from
// the shared cache; see measured_rates.h. NaN for other values. The first call
// measures for about two milliseconds.
TF_LSTM_OPS_EXPORT double tf_lstm_ops_measured_rate(int index);

// y[k] = f(x[k]) for n elements, computed by the instruction set in use.
// `function` is less than 16, a number of core/functions.h.
TF_LSTM_OPS_EXPORT void tf_lstm_ops_activate(int function, const float* x,
                                             float* y, int64_t n);
TF_LSTM_OPS_EXPORT void tf_lstm_ops_exp(const float* x, float* y, int64_t n);

// Returns the name of a function of core/functions.h, null where no function
// has this number. Sets `numbers` to how many numbers it has, and `is_of_rows`
// to 1 if an element depends on the others of its row, else 0.
TF_LSTM_OPS_EXPORT const char* tf_lstm_ops_function(int number, int* numbers,
                                                    int* is_of_rows);

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FOR_PYTHON_H_
