// Counts of live objects, by which tests see whether memory grows.
#ifndef TF_LSTM_OPS_TESTS_METAL_STAND_IN_COUNTS_H_
#define TF_LSTM_OPS_TESTS_METAL_STAND_IN_COUNTS_H_

#include <atomic>

namespace stand_in {

struct Counts {
  std::atomic<long> graphs{0}, tensor_data{0}, buffers{0}, buffer_bytes{0},
      command_buffers{0}, encodings{0};
};
extern Counts counts;

}  // namespace stand_in

#endif  // TF_LSTM_OPS_TESTS_METAL_STAND_IN_COUNTS_H_
