// The parameters of the kernels in steps.cu, for them and for the host.
//
// T is the element type of tensors, C the type of the computation: float for
// 16-bit types, else T. B, H: batch, cell size. All pointers are to device
// memory. A kernel has one thread for each row of the batch and unit.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEP_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEP_ARGUMENTS_H_

#include <cstdint>

#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// The parameters of a cell.
template <class T, class C>
struct CellArguments {
  int64_t cell_size = 0;
  int32_t block[kMaxPreActivations] = {};  // as in GateOrder
  const T* peephole[kMaxPreActivations] = {};
  bool has_peephole = false;
  C clip = 0;
  CellOptions options;
};

// One forward step.
template <class T, class C>
struct ForwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  C forget_bias = 0;
  // x times the input weights, [rows, 4H] by input row. If it is null, x
  // itself is added: the gate in block g reads the columns of x from g *
  // x_gate_stride on.
  const C* input_product = nullptr;
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t x_gate_stride = 0;
  // The previous h times the recurrent weights, [B, 4H].
  const C* recurrent_product = nullptr;
  const T* bias = nullptr;
  // In and out: the cell state, [B, H].
  C* c = nullptr;
  // Out: h and c after the last valid step so far. Null is not written.
  States<T> final_h;
  States<T> final_c;
  // Out: h times `dropout`, [B, H], which the product of the next step reads.
  // Null without dropout.
  T* dropped_h = nullptr;
  Multipliers<T> dropout;
  // Out, by output row. Null is not written.
  T* h = nullptr;
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;
  SavedActivations<T> saved;
};

// One backward step.
template <class T, class C>
struct BackwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  States<const T> c0;
  SavedActivations<const T> saved;
  // Gradients of the outputs, by output row.
  const T* h_grad = nullptr;
  int64_t h_grad_stride = 0;
  SavedActivations<const T> saved_grad;
  // In and out: the gradients of h and c through later steps, [B, H].
  C* next_h_grad = nullptr;
  C* next_c_grad = nullptr;
  // Out: the gradients of the pre-activations, in the gate order of the
  // weights, [rows, 4H] by input row.
  T* z_grad = nullptr;
  // Those of this step only, [B, 4H].
  T* step_z_grad = nullptr;
};

// h before each step, [rows, H] by input row; zero in masked steps.
template <class T, class C>
struct PreviousH {
  CellArguments<T, C> cell;
  Sequence sequence;
  States<const T> h0;
  // By output row. If it is null, h is computed again from the saved
  // activations.
  const T* h = nullptr;
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  T* previous_h = nullptr;
};

// sums[b, p, u] = the sum over the valid steps of row b of z_grad of
// pre-activation p times the cell state that its peephole reads: the state
// before the step, or after it for the output gate. sums [B, pre-activations,
// H].
template <class T, class C>
struct PeepholeSums {
  CellArguments<T, C> cell;
  Sequence sequence;
  States<const T> c0;
  SavedActivations<const T> saved;
  const T* z_grad = nullptr;
  C* sums = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_STEP_ARGUMENTS_H_
