// The parameters of the kernels in sequences.cu, for them and for the host. All
// pointers are to device memory. One thread for each element.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_

#include <cstdint>

#include "core/dropout_rule.h"

namespace tf_lstm_ops::cuda {

// A tensor [outer, rows, width] with these strides.
template <class T>
struct BatchRows {
  T* data = nullptr;
  int64_t outer_stride = 0;
  int64_t row_stride = 0;
  // The rows of the batch that take part, [rows]. Null: all.
  const int32_t* indices = nullptr;
};

// to = from, [outer, rows, width], converted to the other type.
template <class From, class To>
struct ConvertRows {
  int64_t outer = 0;
  int64_t rows = 0;
  int64_t width = 0;
  BatchRows<const From> from;
  BatchRows<To> to;
};

// Clears each row of the batch from its length on. data is [T, B, width], or
// [B, T, width] if batch-major.
template <class T>
struct ClearPadding {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* lengths = nullptr;  // [B]
  T* data = nullptr;
};

// to = from after dropout, both of a shape as above with `rows` rows of a batch
// of `batch`.
template <class T>
struct DropOutputs {
  int64_t time = 0;
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* indices = nullptr;  // as in BatchRows
  DropoutRule rule;
  const uint64_t* key = nullptr;  // in place of the rule's
  uint64_t position = 0;          // of the layer's first element
  const T* from = nullptr;
  T* to = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
