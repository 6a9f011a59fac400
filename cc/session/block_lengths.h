// The lengths of the blocks in which a stream computes: 1, 2, 4, ... steps.
#ifndef TF_LSTM_OPS_SESSION_BLOCK_LENGTHS_H_
#define TF_LSTM_OPS_SESSION_BLOCK_LENGTHS_H_

#include <cstdint>

namespace tf_lstm_ops::session {

constexpr int kBlockLengths = 6;

// The steps of a block, by the index of its length.
constexpr int64_t StepsOfLength(int length) { return int64_t{1} << length; }

constexpr int64_t kMaxBlockSteps = StepsOfLength(kBlockLengths - 1);

// The index of the length of a block: of the shortest one that has at least
// `steps` steps.
constexpr int LengthOf(int64_t steps) {
  int length = 0;
  while (StepsOfLength(length) < steps) ++length;
  return length;
}

static_assert(LengthOf(1) == 0 && LengthOf(3) == 2);
static_assert(LengthOf(kMaxBlockSteps) == kBlockLengths - 1);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_BLOCK_LENGTHS_H_
