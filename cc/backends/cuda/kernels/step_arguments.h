// The parameters of the kernels in steps.cu, for them and for the host.
//
// T is the element type of tensors, C the type of the computation: float for
// 16-bit types, else T. B, G, H: batch, gates that have weights, cell size. All
// pointers are to device memory.
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
  int64_t gates = 0;
  int32_t block[kMaxPreActivations] = {};  // as in GateOrder
  const T* peephole[kMaxPreActivations] = {};
  bool has_peephole = false;
  C clip = 0;
  CellOptions options;
};

// One forward step. One thread for each row of the batch and unit.
template <class T, class C>
struct ForwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  C forget_bias = 0;
  // x times the input weights, [rows, G*H] by input row. Null: x itself is
  // added; the gate in block g reads its columns from g * x_gate_stride on.
  const C* input_product = nullptr;
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t x_gate_stride = 0;
  // The previous h times the recurrent weights, [B, G*H].
  const C* recurrent_product = nullptr;
  // Added to the pre-activations of step 0, [B, G*H]; or null.
  const C* initial_product = nullptr;
  const T* input_bias = nullptr;
  const T* recurrent_bias = nullptr;
  // In and out: the state that the cell reads, [B, H]; null without one.
  C* state = nullptr;
  // Out: h and cs after the last valid step so far; null where not wanted.
  States<T> final_h;
  States<T> final_c;
  // Out: h after dropout, as the next step's product reads it, [sets, B, H].
  T* dropped_h = nullptr;
  Multipliers<T> dropout;
  // Out, by output row; null where not wanted.
  T* h = nullptr;
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;
  SavedActivations<T> saved;
};

// One backward step. One thread for each row of the batch and unit.
template <class T, class C>
struct BackwardStep {
  CellArguments<T, C> cell;
  Sequence sequence;
  int64_t step = 0;
  States<const T> c0;
  // h before each step, [rows, H] by input row; of a GRU.
  const T* previous_h = nullptr;
  const T* h = nullptr;  // of a cell that saves nothing else
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  // Gradients of the outputs, by output row.
  const T* h_grad = nullptr;
  int64_t h_grad_stride = 0;
  SavedActivations<const T> saved_grad;
  // In and out: the gradients of h and cs through later steps, [B, H].
  C* next_h_grad = nullptr;
  C* next_c_grad = nullptr;
  // Out: gradients of the pre-activations, in the order of the weights: by
  // input row [rows, G*H]; those of a GRU's recurrent products, likewise; and
  // those of this step's recurrent products, [B, G*H].
  T* z_grad = nullptr;
  T* recurrent_z_grad = nullptr;
  T* step_z_grad = nullptr;
};

// h before each step, [rows, H] by input row; zero in masked steps. One thread
// for each row of the batch and unit.
template <class T, class C>
struct PreviousH {
  CellArguments<T, C> cell;
  Sequence sequence;
  States<const T> h0;
  // Null, of an LSTM: computed again from the saved activations.
  const T* h = nullptr;
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  T* previous_h = nullptr;
};

// The sums over the steps of each row of z_grad times the state that the
// gate's peephole reads, [B, kMaxPreActivations, H] by gate. One thread for
// each row of the batch and unit.
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
