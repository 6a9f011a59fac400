// The work that a dialect hands to a backend: one direction of one recurrent
// layer over a batch of sequences.
//
// Shapes: T time steps, B rows of the batch, V valid steps, I input size, H
// cell size, P hidden size (P < H with a projection, else P = H), G gates that
// have weights. All pointers are views: the caller owns the memory, which lies
// where the backend computes. Outputs must not overlap inputs or each other.
#ifndef TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_
#define TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/activation.h"
#include "core/float16.h"
#include "core/gate_order.h"
#include "core/layer_tensors.h"
#include "core/sequence.h"

namespace tf_lstm_ops {

enum class CellKind : uint8_t { kLstm, kCustomLstm, kGru, kTanh, kRelu };

constexpr bool IsLstm(CellKind cell) {
  return cell == CellKind::kLstm || cell == CellKind::kCustomLstm;
}

// Gates that have weights.
constexpr int GateCount(CellKind cell) {
  return IsLstm(cell) ? 4 : cell == CellKind::kGru ? 3 : 1;
}

// Activations of a step that the backward pass needs, besides h; see
// PackedActivations.
constexpr int SavedCount(CellKind cell) {
  return IsLstm(cell) ? 5 : cell == CellKind::kGru ? 4 : 0;
}

struct RnnConfig {
  CellKind cell = CellKind::kLstm;
  int64_t input_size = 0;
  int64_t cell_size = 0;
  int64_t hidden_size = 0;  // P: less than H with a projection, else H
  GateOrder gate_order = kOrderICFO;
  double forget_bias = 0;
  double cell_clip = 0;  // clips cs to [-cell_clip, cell_clip] where positive
  LstmActivations activations;  // of an LSTM with custom activations
  // Without input weights, the gate in block g reads H columns of x from column
  // g * x_gate_stride on. With 0 all gates read the same columns.
  int64_t x_gate_stride = 0;
  // The weights are bfloat16 values, stored as float or as bfloat16. Where the
  // processor multiplies bfloat16, x, h and the gradients of the
  // pre-activations are rounded to bfloat16 before each product. All other
  // values stay float.
  bool bfloat16 = false;

  bool projected() const { return hidden_size < cell_size; }
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

  explicit operator bool() const { return data || bfloat16; }
  T* Block(int block) const { return data + block * gate_stride; }

  // Calls f(pointer to the gate in a block), of type const BFloat16* or T*.
  template <class F>
  void Read(int block, const F& f) const {
    if constexpr (std::is_same_v<T, const float>) {
      if (bfloat16) return f(bfloat16 + block * gate_stride);
    }
    f(Block(block));
  }
};

// Layout [K, gates * H], one row for each input: Keras, the block cell.
template <class T>
GateMatrices<T> ByInput(T* data, int gates, int64_t cell) {
  return {data, gates * cell, 1, cell};
}

// Layout [gates, H, K], one row for each unit: cuDNN, PyTorch.
template <class T>
GateMatrices<T> ByUnit(T* data, int64_t inputs, int64_t cell) {
  return {data, 1, inputs, cell * inputs};
}

// Weights, or the gradients with respect to them. Null means absent, or a
// gradient that is not wanted.
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
  // kGateC; or none. Not together with a projection.
  std::array<T*, kMaxPreActivations> peephole = {};

  bool has_peephole() const { return peephole[kGateI] != nullptr; }
};

// Saved activations in one buffer [V, SavedCount(cell), H], by packed row.
// Null `data` saves nothing.
template <class T>
SavedActivations<T> PackedActivations(T* data, CellKind cell,
                                      int64_t cell_size) {
  SavedActivations<T> saved;
  saved.packed = true;
  const int count = SavedCount(cell);
  for (int k = 0; data && k < count; ++k) {
    saved.Set(k, data + k * cell_size, count * cell_size);
  }
  return saved;
}

// What the forward and the backward pass have in common.
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

// The forward pass. Null outputs are not wanted.
template <class T>
struct LayerForward : LayerDirection<T> {
  T* h = nullptr;  // [rows, P] by output row, h_stride apart
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;  // of masked steps
  SavedActivations<T> saved;
  // With a projection, the hidden state before it, [rows, H] by output row.
  // The CPU backend computes it again from o and cs and ignores this field.
  T* unprojected_h = nullptr;
  States<T> final_h;  // after the last valid step; h0 where there is none
  States<T> final_c;  // of an LSTM
};

// The backward pass. Null gradients of outputs count as zeros; null gradients
// of inputs are not wanted.
template <class T>
struct LayerBackward : LayerDirection<T> {
  // Results of the forward pass. Of an LSTM, co may be null, and without a
  // projection h too: both are computed again from cs and o.
  const T* h = nullptr;
  int64_t h_stride = 0;
  SavedActivations<const T> saved;
  const T* unprojected_h = nullptr;
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
  bool adds_to_x_grad = false;
  // Gradients of the pre-activations of an LSTM, [rows, 4H] by input row, in
  // the gate order of the weights.
  T* z_grad = nullptr;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LAYER_DIRECTION_H_
