// The number of threads of a call.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_THREAD_COUNT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_THREAD_COUNT_H_

namespace tf_lstm_ops::cpu {

// Returns the number of threads to use, at most kMaxThreads. It is `configured`
// if that is positive, else the value of the environment variable
// TF_NUM_INTRAOP_THREADS if that is positive, else UsableProcessors(). The
// first call that needs the variable reads it for the whole process.
int ThreadCount(int configured);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_THREAD_COUNT_H_
