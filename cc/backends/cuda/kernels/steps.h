// Steps: which row of the batch takes part in which step, and where its numbers
// are. What core/schedule.h lists on the host is arithmetic here, so that masks
// and lengths stay in the device's memory and shapes may change freely.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEPS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEPS_H_

#include <cstdint>

#include "core/macros.h"

namespace tf_lstm_ops::cuda {

struct Steps {
  int64_t batch = 0;
  int64_t time = 0;   // of the tensors
  int64_t steps = 0;  // that are taken, of `time`
  bool time_major = true;
  // From the last step to the first, of each row its own.
  bool reversed = false;
  // Step s writes output s, whichever input it reads.
  bool outputs_in_order = false;
  // In the device's memory; at most one of them.
  const int32_t* lengths = nullptr;  // [B], each at most `steps`
  const bool* mask = nullptr;        // [B,T], by the input that is read

  struct Rows {
    bool valid;
    int64_t input;   // of x seen as [rows, I]
    int64_t output;  // of the outputs
  };

  TF_LSTM_OPS_DEVICE int64_t rows() const {
    return batch * (time_major ? steps : time);
  }
  TF_LSTM_OPS_DEVICE bool all_valid() const {
    return lengths == nullptr && mask == nullptr;
  }

  TF_LSTM_OPS_INLINE int64_t Length(int64_t b) const {
    return lengths ? lengths[b] : steps;
  }
  TF_LSTM_OPS_INLINE int64_t Row(int64_t b, int64_t t) const {
    return time_major ? t * batch + b : b * time + t;
  }

  // Steps of a row from its length on read and write its padding, in order.
  TF_LSTM_OPS_INLINE Rows At(int64_t b, int64_t s) const {
    const int64_t length = Length(b);
    const int64_t t = reversed && s < length ? length - 1 - s : s;
    const int64_t input = Row(b, t);
    return {mask ? mask[b * time + t] : s < length, input,
            outputs_in_order ? Row(b, s) : input};
  }

  // Whether any step reads this row of x, and its row of the batch.
  TF_LSTM_OPS_INLINE bool Reads(int64_t row, int64_t* b) const {
    *b = time_major ? row % batch : row / time;
    const int64_t t = time_major ? row / batch : row % time;
    if (mask) return mask[*b * time + t];
    return t < Length(*b);
  }
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEPS_H_
