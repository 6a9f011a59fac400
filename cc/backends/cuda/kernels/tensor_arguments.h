// The parameters of the kernels in tensors.cu, for them and for the host. T and
// C as in step_arguments.h. All pointers are to device memory. A kernel has one
// thread for each element that it writes, unless its comment says otherwise.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_

#include <cstdint>

#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// to = from, or to += from if `adds`, [rows, width]. Null `from` reads as
// zeros. The tensors must not overlap.
template <class From, class To>
struct CopyRows {
  int64_t rows = 0;
  int64_t width = 0;
  const From* from = nullptr;
  int64_t from_stride = 0;
  To* to = nullptr;
  int64_t to_stride = 0;
  bool adds = false;
};

// to[r, k] = from[r, k] * m, or to += if `adds`, with the multiplier m of the
// row of the batch that r belongs to and of column k. Without multipliers m is
// 1. Rows that no step reads become zero. to [rows, width].
template <class From, class To, class T>
struct DropRows {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  // If true, there is one row for each row of the batch, and all are read. If
  // false, there is one row for each input row of `sequence`.
  bool by_batch = false;
  const From* from = nullptr;  // null reads as zeros
  int64_t from_stride = 0;
  Multipliers<T> dropout;
  To* to = nullptr;
  bool adds = false;
};

// x_grad of a layer without input weights, from z_grad [rows, G*H]:
//
//   x_grad[r, g * gate_stride + u] = z_grad[r, g * H + u]   if gate_stride > 0
//   x_grad[r, u] = sum over g of z_grad[r, g * H + u]       if gate_stride = 0
//
// If `adds`, the kernel adds to x_grad.
template <class T>
struct AddedInputGrad {
  int64_t rows = 0;
  int64_t gates = 0;
  int64_t cell_size = 0;
  int64_t gate_stride = 0;  // RnnConfig::x_gate_stride
  const T* z_grad = nullptr;
  T* x_grad = nullptr;
  int64_t x_grad_stride = 0;
  bool adds = false;
};

// The gradient of each step's h, [rows, H] by output row, from the gradient of
// the layer's output. The output of a masked step repeats the h of the
// preceding valid step, so its gradient is added to that of the repeated step.
// If masked_is_zero, the output of a masked step is zero and its gradient is
// not used. One thread for each row of the batch and unit.
template <class T>
struct StepGrads {
  Sequence sequence;
  int64_t cell_size = 0;
  bool last_only = false;  // the output is that of the last step, [B, 1, H]
  bool masked_is_zero = false;
  const T* output_grad = nullptr;  // [rows, H] by output row, or [B, 1, H]
  T* h_grad = nullptr;
};

// to[n, k] = the sum of column k over rows [n * chunk, (n + 1) * chunk) of
// `from`, whose rows begin `stride` elements apart. to [chunks, columns]. The
// order of the additions depends on the sizes only.
template <class From, class To>
struct SumRows {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
  int64_t chunk = 0;
  const From* from = nullptr;
  To* to = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_
