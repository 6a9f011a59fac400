// Sequence: which steps are valid for each row of a batch, and which rows of
// the tensors a step reads and writes.
//
// All backends share this arithmetic. The CPU backend evaluates it once for
// each call (core/packed_sequence.h). Device code evaluates it in each thread,
// so masks and lengths may stay in device memory.
#ifndef TF_LSTM_OPS_CORE_SEQUENCE_H_
#define TF_LSTM_OPS_CORE_SEQUENCE_H_

#include <cstdint>

#include "core/macros.h"

namespace tf_lstm_ops {

struct Sequence {
  int64_t batch = 0;       // B
  int64_t time = 0;        // T, time steps of the tensors
  int64_t steps = 0;       // steps to compute, at most `time`
  bool time_major = true;  // tensors are [T, B, .], else [B, T, .]
  // Whether each row is processed from its last time step to its first. Its
  // last time step is lengths[b] - 1, or steps - 1 without lengths.
  bool reversed = false;
  // Whether step s writes the output of time step s. Else it writes the output
  // of the time step that it reads.
  bool in_order_of_computation = false;
  // At most one of `lengths` and `mask` is set. The caller owns both. They lie
  // in the memory of the device that computes.
  const int32_t* lengths = nullptr;  // [B], each between 0 and `steps`
  const bool* mask = nullptr;        // [B, T], by the time step that is read

  // Step s of one row of the batch.
  struct Step {
    bool valid;      // whether step s is valid for the row
    int64_t input;   // row of x as [rows, I]
    int64_t output;  // row of the outputs as [rows, P]
  };

  // Number of rows of x that steps may read.
  TF_LSTM_OPS_DEVICE int64_t rows() const {
    return batch * (time_major ? steps : time);
  }
  TF_LSTM_OPS_DEVICE bool all_valid() const {
    return lengths == nullptr && mask == nullptr;
  }

  TF_LSTM_OPS_INLINE int64_t Length(int64_t b) const {
    return lengths ? lengths[b] : steps;
  }
  // The row of the tensors that holds time step t of row b.
  TF_LSTM_OPS_INLINE int64_t Row(int64_t b, int64_t t) const {
    return time_major ? t * batch + b : b * time + t;
  }

  // Step s of row b. Without a mask, a step s >= Length(b) is not valid. The
  // rows of such a step are the rows of the padding at time step s.
  TF_LSTM_OPS_INLINE Step At(int64_t b, int64_t s) const {
    const int64_t length = Length(b);
    const int64_t t = reversed && s < length ? length - 1 - s : s;
    const int64_t input = Row(b, t);
    return {mask ? mask[b * time + t] : s < length, input,
            in_order_of_computation ? Row(b, s) : input};
  }

  // Whether a step reads this row of x. Sets `b` to its row of the batch.
  TF_LSTM_OPS_INLINE bool Reads(int64_t row, int64_t* b) const {
    *b = time_major ? row % batch : row / time;
    const int64_t t = time_major ? row / batch : row % time;
    if (mask) return mask[*b * time + t];
    return t < Length(*b);
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SEQUENCE_H_
