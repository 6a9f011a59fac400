// The sizes of the processor's caches. The schedules divide work by them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_CACHES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_CACHES_H_

#include <cstdint>
#include <string>

namespace tf_lstm_ops::cpu {

// Bytes. Of a cache that several processors share, such as an L2 cache of two
// hardware threads, l1 and l2 are a processor's part.
struct Caches {
  int64_t l1 = 32 << 10;   // of data
  int64_t l2 = 512 << 10;  // 512 KiB: the least of AMD's and Intel's servers
  int64_t shared = 16 << 20;
};

// Reads the caches of the first processor from the files of Linux below `root`,
// which is empty for the system's own. A size that is not there keeps its
// default.
Caches ReadCaches(const std::string& root);

// The caches of this processor. They are read once.
const Caches& TheCaches();

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_CACHES_H_
