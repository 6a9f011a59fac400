// Integer functions and the tile's height, for the engine and its schedules.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIZES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIZES_H_

#include <cstdint>

namespace tf_lstm_ops {

// Rows of the result that a product kernel computes. With 16 registers, six
// rows times two vectors are twelve sums, which hide the latency of
// multiply-adds. An isolated loop ran at 97 GFLOP/s on a core whose peak is
// 103, with two rows times four vectors at 75; benchmarks/NOTES.md, "Users'
// shapes".
constexpr int kRows = 6;
// Vectors of columns that it computes at most.
constexpr int kColumns = 4;
// The least rows of a slice of a backward pass: two tiles. With fewer, the
// tiles of most steps would not be full.
constexpr int64_t kMinSliceRows = 2 * kRows;

constexpr int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t Max(int64_t a, int64_t b) { return a < b ? b : a; }
constexpr int64_t CeilDiv(int64_t n, int64_t block) {
  return (n + block - 1) / block;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIZES_H_
