// A layer direction: one direction of one recurrent layer over a batch of
// sequences. A dialect fills these structs, and a backend computes them.
//
// Shapes: T time steps, B rows of the batch, V valid steps, I input size, H
// cell size, P hidden size (P < H with a projection, else P = H), G gates that
// have weights. `rows` is Sequence::rows(), or the number of rows that the
// caller stores without padding. Strides are in elements. The caller owns all
// memory; it lies on the device that computes. Outputs must not overlap inputs
// or each other.
#ifndef TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_
#define TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "core/cell_options.h"
#include "core/cells.h"
#include "core/float16.h"
#include "core/gate_order.h"
#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops {

// The parameters of a layer direction that are not tensors.
struct RnnConfig {
  CellKind cell = CellKind::kLstm;
  int64_t input_size = 0;
  int64_t cell_size = 0;
  int64_t hidden_size = 0;  // P: less than H with a projection, else H
  GateOrder gate_order = kOrderICFO;
  double forget_bias = 0;
  double cell_clip = 0;  // clips cs to [-cell_clip, cell_clip] where positive
  // Clips the projected h likewise. Only the CPU backend has it.
  double proj_clip = 0;
  CellOptions options;
  // Without input weights, the gate in block g reads H columns of x from column
  // g * x_gate_stride on. With 0 all gates read the same columns.
  int64_t x_gate_stride = 0;
  // The weights are bfloat16 values, stored as float or as bfloat16. Where the
  // processor multiplies bfloat16, x, h and the gradients of the
  // pre-activations are rounded to bfloat16 before each product. All other
  // values stay float.
  bool bfloat16 = false;
  bool projected() const { return hidden_size < cell_size; }
  bool clips_h() const { return projected() && proj_clip > 0; }
};

// A matrix [K, H] for each gate, as a strided view: element (k, n) of the gate
// in block g is data[g * gate_stride + k * row_stride + n * column_stride].
template <class T>
struct GateMatrices {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  int64_t gate_stride = 0;
  // Set in place of `data` where T is const float and the weights are stored as
  // bfloat16.
  const BFloat16* bfloat16 = nullptr;
  // With `bfloat16`: whether what is multiplied with the weights may be rounded
  // to bfloat16, too, for instructions that multiply bfloat16.
  bool rounds_factors = false;
  // Set in place of `data` where the weights are integers from -127 to 127. A
  // weight is the integer times the scale of its column: scales[g * gate_stride
  // + n]. The column stride is 1.
  const int8_t* int8 = nullptr;
  const float* scales = nullptr;

  // Whether the weights are present.
  explicit operator bool() const { return data || bfloat16 || int8; }
  // The matrix of the gate in a block. `data` must be set.
  T* Block(int block) const { return data + block * gate_stride; }

  // Calls f with a pointer to the matrix of the gate in a block. The pointer is
  // a const BFloat16* if `bfloat16` is set, else a T*.
  template <class F>
  void Read(int block, const F& f) const {
    if constexpr (std::is_same_v<T, const float>) {
      if (bfloat16) return f(bfloat16 + block * gate_stride);
    }
    f(Block(block));
  }
};

// A view of `data` [K, gates * H], which has one row for each input. Keras and
// the block cell use this layout. `cell` is H.
template <class T>
GateMatrices<T> ByInput(T* data, int gates, int64_t cell) {
  return {data, gates * cell, 1, cell};
}

// A view of `data` [gates, H, K], which has one row for each unit. cuDNN and
// PyTorch use this layout. `inputs` is K, `cell` is H.
template <class T>
GateMatrices<T> ByUnit(T* data, int64_t inputs, int64_t cell) {
  return {data, 1, inputs, cell * inputs};
}

// Weights, or the gradients with respect to them. A null weight is absent; a
// null gradient is not computed.
template <class T>
struct RnnWeights {
  // [I, H] for each gate. Null: x itself is added to the pre-activations; see
  // RnnConfig::x_gate_stride.
  GateMatrices<T> input;
  GateMatrices<T> recurrent;    // [P, H] for each gate
  GateMatrices<T> projection;   // [H, P], where P < H
  T* input_bias = nullptr;      // [gates * H]
  T* recurrent_bias = nullptr;  // [gates * H]
  // [H] each, by LstmGate: all four gates with custom activations, else all but
  // kGateC; or none. Together with a projection on the CPU only.
  std::array<T*, kMaxPreActivations> peephole = {};

  // Of the layer-normalised cells, see layer_norm_cell.h. The first two are in
  // the gate order of the weights.
  T* input_scale = nullptr;      // gx [gates * H]
  T* recurrent_scale = nullptr;  // gh [gates * H]
  T* state_scale = nullptr;      // gc [H], of an LSTM
  T* state_offset = nullptr;     // bc [H], of an LSTM

  bool has_peephole() const { return peephole[kGateI] != nullptr; }
};

// A view of saved activations in one buffer [V, SavedCount(cell), H], by packed
// row. With null `data` nothing is saved. Activations from kMaxSavedActivations
// on have no entry; they lie behind the others. E is T, or BFloat16 where T is
// float.
template <class T, class E>
SavedActivations<T> ActivationsByPackedRow(E* data, CellKind cell,
                                           int64_t cell_size) {
  SavedActivations<T> saved;
  saved.by_packed_row = true;
  const int count = SavedCount(cell);
  for (int k = 0; data && k < std::min(count, kMaxSavedActivations); ++k) {
    saved.Set(k, data + k * cell_size, count * cell_size);
  }
  return saved;
}

// The inputs that the forward pass and the backward pass share.
template <class T>
struct LayerDirection {
  RnnConfig config;
  Sequence sequence;
  RnnWeights<const T> weights;
  Multipliers<T> input_dropout;      // of x, [G, B, I]
  Multipliers<T> recurrent_dropout;  // of the previous h, [G, B, P]
  const T* x = nullptr;              // [rows, I] by input row
  int64_t x_stride = 0;              // of x and x_grad
  States<const T> h0;                // [B, P]
  States<const T> c0;                // [B, H], of an LSTM
};

// The forward pass. Null outputs are not computed.
template <class T>
struct LayerForward : LayerDirection<T> {
  T* h = nullptr;  // [rows, P] by output row, h_stride apart
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;  // of masked steps
  SavedActivations<T> saved;
  T* unclipped_h = nullptr;  // [V, P] by packed row, of a config that clips_h()
  States<T> final_h;  // after the last valid step; h0 where there is none
  States<T> final_c;  // of an LSTM
};

// The backward pass. Null gradients of outputs count as zeros. Null gradients
// of inputs are not computed.
template <class T>
struct LayerBackward : LayerDirection<T> {
  // Results of the forward pass. For an LSTM, co may be null, and h may be null
  // without a projection. The backward pass computes both again from cs and o.
  const T* h = nullptr;
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  // Of a config that clips_h(). The clip has the gradient 0 where |h| is larger
  // than proj_clip, else 1, as tf.clip_by_value.
  const T* unclipped_h = nullptr;  // [V, P]
  // Gradients of the loss with respect to the outputs.
  const T* h_grad = nullptr;  // [rows, P] by output row
  int64_t h_grad_stride = 0;
  SavedActivations<const T> saved_grad;
  States<const T> final_h_grad;
  States<const T> final_c_grad;
  // Out: gradients with respect to the inputs.
  States<T> h0_grad;
  States<T> c0_grad;
  RnnWeights<T> weights_grad;
  T* x_grad = nullptr;  // [rows, I] by input row
  // Whether the pass adds to x_grad instead of overwriting it.
  bool adds_to_x_grad = false;
  // Gradients with respect to the pre-activations of an LSTM, [rows, 4H] by
  // input row, in the gate order of the weights. On the CPU only of a step that
  // cpu::IsStepGradient accepts, as LSTMBlockCellGrad computes it; null in all
  // other passes.
  T* z_grad = nullptr;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_
