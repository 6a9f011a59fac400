// The parameters of the kernels in tensors.cu, for them and for the host. T and
// C as in step_arguments.h. All pointers are to device memory.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_

#include <cstdint>

#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// to = from, or to += from if `adds`, [rows, width]. Null `from` reads as
// zeros. The tensors must not overlap. One thread for each element.
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

// to[s, r, k] = from[r, k] * m, with the multiplier m of gate s, of the row of
// the batch that r belongs to, and of column k. Rows that no step reads become
// zero. There is one set for each gate, or one for all gates. One thread for
// each element of `to`.
template <class T>
struct DropRows {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t sets = 1;
  // If true, there is one row for each row of the batch, and all are read. If
  // false, there is one row for each input row of `sequence`.
  bool by_batch = false;
  const T* from = nullptr;  // null reads as zeros
  int64_t from_stride = 0;
  Multipliers<T> dropout;
  T* to = nullptr;  // [sets, rows, width]
};

// The gradient of DropRows: to[r, k] += sum over s of m * from[s, r, k], with
// the multiplier m as in DropRows. from [sets, rows, width], to [rows, width].
// One thread for each element of `to`.
template <class T, class C>
struct DropRowsGrad {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t sets = 1;
  bool by_batch = false;
  const C* from = nullptr;
  Multipliers<T> dropout;
  C* to = nullptr;
};

// x_grad of a layer without input weights, from z_grad [rows, G*H]:
//
//   x_grad[r, g * gate_stride + u] = z_grad[r, g * H + u]   if gate_stride > 0
//   x_grad[r, u] = sum over g of z_grad[r, g * H + u]       if gate_stride = 0
//
// If `adds`, the kernel adds to x_grad. One thread for each element of x_grad.
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

// first_rows: to[b] = the row of `from` that the first step of row b reads.
// add_to_last_rows: the row of `to` that the last valid step of row b writes +=
// from[b]. Rows have `width` elements. One thread for each of their elements.
template <class T>
struct EndRows {
  Sequence sequence;  // without a mask; each row has a valid step
  int64_t width = 0;
  const T* from = nullptr;
  int64_t from_stride = 0;
  T* to = nullptr;
  int64_t to_stride = 0;
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

// Thread n compares elements [n * chunk, (n + 1) * chunk) of `size`. It writes
// to to[n], [threads, 2], the largest |found - expected| and the largest
// |expected|. The first is NaN if a difference is NaN. Elements whose expected
// value is not finite are left out.
template <class T, class C>
struct MaxDifference {
  int64_t size = 0;
  int64_t chunk = 0;
  const T* found = nullptr;
  const T* expected = nullptr;
  C* to = nullptr;
};

// to[n, k] = the sum of column k over rows [n * chunk, (n + 1) * chunk) of
// `from`, whose rows begin `stride` elements apart. to [chunks, columns]. One
// thread for each sum. The order of the additions depends on the sizes only.
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
