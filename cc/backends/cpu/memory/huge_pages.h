// UseHugePages: asks the system for huge pages.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MEMORY_HUGE_PAGES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MEMORY_HUGE_PAGES_H_

#include <cstddef>

namespace tf_lstm_ops {

// The size of a huge page of x86-64, and of Arm with pages of 4 KiB.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Asks for huge pages in [data, data + bytes), for those that lie in it as a
// whole. Call it before the first write: memory that has been written to keeps
// its pages for some time. The contents do not change. Does nothing on systems
// other than Linux, and where Linux has huge pages disabled.
void UseHugePages(void* data, size_t bytes);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MEMORY_HUGE_PAGES_H_
