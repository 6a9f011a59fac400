// Counts of live objects. Tests use them to find leaks.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_COUNTS_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_COUNTS_H_

#include <atomic>

namespace fake {

struct Counts {
  std::atomic<long> graphs{0}, tensor_data{0}, buffers{0}, buffer_bytes{0},
      command_buffers{0}, encodings{0};
};
extern Counts counts;

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_COUNTS_H_
