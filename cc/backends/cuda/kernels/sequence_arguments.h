// The parameters of the kernels in sequences.cu, for them and for the host. All
// pointers are to device memory. A kernel has one thread for each element. T
// and C are float, double, Half or BFloat16.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_

#include <cstdint>

#include "core/dropout_rule.h"

namespace tf_lstm_ops::cuda {

// A view of a tensor [outer, rows, width]. Element (o, r, k) is data[o *
// outer_stride + i * row_stride + k] with i = indices[r], or i = r where
// `indices` is null.
template <class T>
struct BatchRows {
  T* data = nullptr;
  int64_t outer_stride = 0;
  int64_t row_stride = 0;
  // [rows]: the selected rows of the batch.
  const int32_t* indices = nullptr;
};

// to = from, [outer, rows, width], converted to the type of `to`. The tensors
// must not overlap.
template <class From, class To>
struct ConvertRows {
  int64_t outer = 0;
  int64_t rows = 0;
  int64_t width = 0;
  BatchRows<const From> from;
  BatchRows<To> to;
};

// Sets the padding to zero: data of row b at time steps t >= lengths[b]. data
// is [T, B, width], or [B, T, width] if batch-major.
template <class T>
struct ClearPadding {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* lengths = nullptr;  // [B]
  T* data = nullptr;
};

// to = from after dropout (core/dropout_rule.h). Both are [T, rows, width], or
// [rows, T, width] if batch-major, with `rows` rows of a batch of `batch`.
template <class T>
struct DropOutputs {
  int64_t time = 0;
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t width = 0;
  bool time_major = true;
  const int32_t* indices = nullptr;  // as in BatchRows
  DropoutRule rule;
  const uint64_t* key = nullptr;  // replaces rule.key
  uint64_t position = 0;          // of the layer's first element in the mask
  const T* from = nullptr;
  T* to = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SEQUENCE_ARGUMENTS_H_
