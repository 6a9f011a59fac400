// The parameters of the kernels in rnn.cu and tensors.cu, for them and for the
// host. T is the type of tensors, C the one that is computed in: float for
// those of 16 bits. B, G, H, I: batch, gates that have weights, units, inputs.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_RNN_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_RNN_ARGUMENTS_H_

#include <cstdint>

#include "core/activation.h"
#include "core/gate_order.h"
#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// What the passes of a cell know of it.
template <class T, class C>
struct CellArguments {
  int64_t cell = 0;
  int64_t gates = 0;
  int32_t block[kMaxPreActivations] = {};  // where each part's gate stands
  const T* peephole[kMaxPreActivations] = {};
  bool has_peephole = false;
  C clip = 0;
  LstmActivations activations;
};

// One step forward, a thread for each row and unit.
template <class T, class C>
struct ForwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  C forget_bias = 0;
  // The input's share of the pre-activations, [rows, G*H]; or, where it is
  // null, x itself: the gate in block g sees columns from g * x_gate_stride on.
  const C* from_input = nullptr;
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t x_gate_stride = 0;
  const C* from_h = nullptr;  // the previous output's share, [B, G*H]
  const C* first = nullptr;   // what step 0 has besides, [B, G*H]; or null
  const T* input_bias = nullptr;
  const T* recurrent_bias = nullptr;
  // In and out. Null where not needed.
  C* state = nullptr;  // [B, H]
  States<T> last_h;    // h after the last valid step
  States<T> last_c;    // cs as well
  // h as the next step's product sees it, [sets, B, H].
  T* seen_h = nullptr;
  Multipliers<T> dropout;
  // Out, by output row; null where not wanted.
  T* h = nullptr;
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;
  SavedActivations<T> saved;
};

// One step backward, a thread for each row and unit.
template <class T, class C>
struct BackwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  States<const T> c0;
  const T* h_before = nullptr;  // [rows, H] by input row; of a GRU
  const T* h = nullptr;         // of a cell that keeps nothing else
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  // Upstream, by output row.
  const T* h_grad = nullptr;
  int64_t h_grad_stride = 0;
  SavedActivations<const T> saved_grad;
  // In and out: gradients of the states. Out: but for what goes through the
  // recurrent weights. [B, H]
  C* dh = nullptr;
  C* dc = nullptr;
  // Out: gradients of the pre-activations, zero where the row takes no part. Of
  // the parts that come from the input, [rows, G*H] by input row, and, where
  // these are others, of those that come from the previous output; of the
  // latter also this step's, [B, G*H].
  T* dz = nullptr;
  T* dz_h = nullptr;
  T* dz_step = nullptr;
};

// The h that each step began with, [rows, H] by input row; zero where the row
// takes no part. A thread for each row of the batch and unit.
template <class T, class C>
struct HBefore {
  CellArguments<T, C> cell;
  Sequence sequence;
  States<const T> h0;
  const T* h = nullptr;  // null: o * co
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  T* before = nullptr;
};

// For each part the sum over a row's steps of dz times the state that its
// peephole sees, [B, parts, H]. A thread for each row of the batch and unit.
template <class T, class C>
struct PeepholeSums {
  CellArguments<T, C> cell;
  Sequence sequence;
  States<const T> c0;
  SavedActivations<const T> saved;
  const T* dz = nullptr;
  C* sums = nullptr;
};

// to = from, of `rows` rows of `width` numbers; null reads as zeros.
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

// [sets, rows, width]: rows as the gates see them, with dropout; zero where no
// step reads them.
template <class T>
struct SeenRows {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t sets = 1;
  bool of_states = false;  // a row for each row of the batch, all of them read
  const T* from = nullptr;
  int64_t from_stride = 0;
  Multipliers<T> dropout;
  T* to = nullptr;
};

// to += the sum over the gates of their multipliers times from, [sets, rows,
// width]: the gradient of SeenRows.
template <class T, class C>
struct AddSeen {
  Sequence sequence;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t sets = 1;
  bool of_states = false;
  const C* from = nullptr;
  Multipliers<T> dropout;
  C* to = nullptr;
};

// dx where x itself is added to the gates.
template <class T, class C>
struct PassToInput {
  int64_t rows = 0;
  int64_t gates = 0;
  int64_t cell = 0;
  int64_t gate_stride = 0;
  const T* dz = nullptr;
  T* x_grad = nullptr;
  int64_t dx_stride = 0;
  bool adds = false;
};

// For each row of the batch a row of `width` numbers: the first that its steps
// read, or the last that they write. A thread for each number.
template <class T>
struct EndRows {
  Sequence
      sequence;  // without a mask; each row of the batch takes a step at least
  int64_t width = 0;
  const T* from = nullptr;
  int64_t from_stride = 0;
  T* to = nullptr;
  int64_t to_stride = 0;
};

// The gradient of each step's h, [rows, H] by output row, from the gradient of
// an output in which a masked step repeats the h of the preceding valid step,
// or is zero. The gradient of a masked step's output is added to the step that
// it repeats. A thread for each row of the batch and unit.
template <class T>
struct StepGrads {
  Sequence sequence;
  int64_t cell = 0;
  bool last_only = false;  // the output is that of the last step, [B, 1, H]
  bool masked_is_zero = false;
  const T* output_grad = nullptr;
  T* h_grad = nullptr;
};

// Of `size` numbers each thread takes `chunk`: the largest difference from the
// expected ones, NaN if any is, and the largest of these, [threads, 2].
// Expected ones that are not finite do not count.
template <class T, class C>
struct LargestDifference {
  int64_t size = 0;
  int64_t chunk = 0;
  const T* found = nullptr;
  const T* expected = nullptr;
  C* to = nullptr;
};

// Sums of the columns of `rows` rows, each of `chunk` rows, [chunks, columns].
// A thread for each sum. The same numbers are always added in the same order.
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

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_RNN_ARGUMENTS_H_
