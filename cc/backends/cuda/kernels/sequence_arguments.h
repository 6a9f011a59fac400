// The parameters of the kernels in sequences.cu, for them and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_

#include <cstdint>

#include "core/dropout_rule.h"

namespace tf_lstm_ops::cuda {

// Rows of a batch, in [outer, rows, width] with these strides.
template <class T>
struct BatchRows {
  T* data = nullptr;
  int64_t outer_stride = 0;
  int64_t row_stride = 0;
  // In the device's memory: which row is the k-th. Null: all are there.
  const int32_t* numbers = nullptr;
};

// to = from, [outer, rows, width]. A thread for each number.
template <class From, class To>
struct MoveRows {
  int64_t outer = 0;
  int64_t rows = 0;
  int64_t width = 0;
  BatchRows<const From> from;
  BatchRows<To> to;
};

// Zeros from each row's length on. A thread for each number of data,
// [T,B,width] or, if not time-major, [B,T,width].
template <class T>
struct ClearPadding {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* lengths = nullptr;  // [B], in the device's memory
  T* data = nullptr;
};

// to = from, but for what is dropped; both of the same shape as above. A thread
// for each number.
template <class T>
struct DropOutputs {
  int64_t time = 0;
  int64_t rows = 0;  // of a batch of `batch`
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* numbers = nullptr;  // as in BatchRows
  DropoutRule rule;
  const uint64_t* key = nullptr;  // the rule's, in the device's memory
  uint64_t position = 0;          // of the layer's first number
  const T* from = nullptr;
  T* to = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
