// The processors that a process may use.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_PROCESSORS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_PROCESSORS_H_

#include <string>

namespace tf_lstm_ops::cpu {

// Returns the number of processors in the affinity mask of the calling thread,
// at most the CPU quota of the process.
int UsableProcessors();

// Returns the CPU quota of the control groups of the process (cgroup versions 1
// and 2) in processors, rounded up; 0 if there is none. `root` is the folder
// that has proc and sys, empty for that of the system.
int QuotaProcessors(const std::string& root);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_PROCESSORS_H_
