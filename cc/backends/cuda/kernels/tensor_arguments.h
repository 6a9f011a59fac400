// The parameters of the kernels in tensors.cu, for them and for the host. T and
// C as in step_arguments.h. All pointers are to device memory.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_TENSOR_ARGUMENTS_H_

#include <cstdint>

#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// to = from, or to += from: `rows` rows of `width` elements. Null `from` reads
// as zeros. One thread for each element.
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

// Rows after dropout, one set for each gate that has its own multipliers,
// [sets, rows, width]. Rows that no step reads become zero. One thread for each
// element.
template <class T>
struct DropRows {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t sets = 1;
  // One row for each row of the batch, all of them read; else one for each
  // input row.
  bool by_batch = false;
  const T* from = nullptr;  // null reads as zeros
  int64_t from_stride = 0;
  Multipliers<T> dropout;
  T* to = nullptr;
};

// The gradient of DropRows: to [rows, width] += the sum over the sets of their
// multipliers times from [sets, rows, width]. One thread for each element of
// `to`.
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

// x_grad of a layer without input weights, from z_grad [rows, G*H]. One thread
// for each element of x_grad.
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

// One row of `width` elements for each row of the batch: the first one that its
// steps read, or the last one that they write. One thread for each element.
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
// an output in which a masked step repeats the h of the preceding valid step,
// or is zero. The gradient of a masked step's output is added to the step that
// it repeats. One thread for each row of the batch and unit.
template <class T>
struct StepGrads {
  Sequence sequence;
  int64_t cell_size = 0;
  bool last_only = false;  // the output is that of the last step, [B, 1, H]
  bool masked_is_zero = false;
  const T* output_grad = nullptr;
  T* h_grad = nullptr;
};

// Each thread compares `chunk` of `size` elements: to [threads, 2] are the
// largest difference, NaN if any is, and the largest expected value. Expected
// values that are not finite are left out.
template <class T, class C>
struct MaxDifference {
  int64_t size = 0;
  int64_t chunk = 0;
  const T* found = nullptr;
  const T* expected = nullptr;
  C* to = nullptr;
};

// Sums of the columns over chunks of `chunk` rows, [chunks, columns]. One
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
