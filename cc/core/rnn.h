// What a dialect hands to a backend: one recurrent layer in one direction over
// one batch of sequences. Every pointer states its shape; V is the number of
// entries of the schedule, B its batch, I, H and P the sizes of the input, the
// cell and the output. Nothing here knows TensorFlow or a device.
#ifndef TF_LSTM_OPS_CORE_RNN_H_
#define TF_LSTM_OPS_CORE_RNN_H_

#include <array>
#include <cstdint>

#include "core/gate_order.h"
#include "core/schedule.h"

namespace tf_lstm_ops {

enum class CellKind : uint8_t { kLstm, kGru, kTanh, kRelu };

// Gates that have weights.
constexpr int GateCount(CellKind cell) {
  return cell == CellKind::kLstm ? 4 : cell == CellKind::kGru ? 3 : 1;
}

// Rows of a step that the backward pass needs, besides h; see PackedSteps.
constexpr int SavedRows(CellKind cell) {
  return cell == CellKind::kLstm ? 5 : cell == CellKind::kGru ? 4 : 0;
}

struct RnnConfig {
  CellKind cell = CellKind::kLstm;
  int64_t input_size = 0;
  int64_t cell_size = 0;
  int64_t hidden_size = 0;  // P: less than H with a projection, else H
  GateOrder gate_order = kOrderICFO;
  double forget_bias = 0;
  double cell_clip = 0;  // clips cs to [-cell_clip, cell_clip] where positive

  bool projected() const { return hidden_size < cell_size; }
};

// A matrix [K, H] for each gate, in some order and layout: element (k, n) of
// the gate in block g is data[g * gate_stride + k * row_stride +
// n * column_stride].
template <class T>
struct GateMatrices {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  int64_t gate_stride = 0;

  explicit operator bool() const { return data != nullptr; }
  T* Block(int block) const { return data + block * gate_stride; }
};

// [K, gates * H], one row for each input: Keras, the block cell.
template <class T>
GateMatrices<T> ByInput(T* data, int gates, int64_t cell) {
  return {data, gates * cell, 1, cell};
}

// [gates, H, K], one row for each unit: cuDNN, PyTorch.
template <class T>
GateMatrices<T> ByUnit(T* data, int64_t inputs, int64_t cell) {
  return {data, 1, inputs, cell * inputs};
}

// Weights, or the gradients with respect to them. Any of them may be null.
template <class T>
struct RnnWeights {
  // [I, H] a gate. Null: x has H columns and is added to every gate.
  GateMatrices<T> input;
  GateMatrices<T> recurrent;    // [P, H] a gate
  GateMatrices<T> projection;   // [H, P], one; where P < H
  T* input_bias = nullptr;      // [gates * H]
  T* recurrent_bias = nullptr;  // [gates * H]
  T* wci = nullptr;  // [H]; all three, or null: no peepholes; not if projected
  T* wcf = nullptr;
  T* wco = nullptr;

  bool has_peephole() const { return wci != nullptr; }
};

// Multipliers of the input and of the previous output, one set for each gate in
// the order of the weights, the same in every step ("variational" dropout).
template <class T>
struct GateDropout {
  const T* input = nullptr;      // [gates, B, I] or null
  const T* recurrent = nullptr;  // [gates, B, P] or null; not with a projection
};

// Rows of H numbers for each entry of a schedule, numbered as the cell's
// equations say (LstmRow, GruRow). Row k of entry e:
// row[k] + (compact ? e : output_row[e]) * stride.
constexpr int kMaxStepRows = 6;
template <class T>
struct StepRows {
  std::array<T*, kMaxStepRows> row = {};
  int64_t stride = 0;
  bool compact = false;
};

// The rows that a backward pass needs, [V, SavedRows(cell), H].
template <class T>
StepRows<T> PackedSteps(T* data, CellKind cell, int64_t cell_size) {
  StepRows<T> steps;
  steps.stride = SavedRows(cell) * cell_size;
  steps.compact = true;
  for (int k = 0; k < SavedRows(cell); ++k) steps.row[k] = data + k * cell_size;
  return steps;
}

template <class T>
struct RnnForward {
  RnnConfig config;
  const Schedule* schedule = nullptr;
  RnnWeights<const T> weights;
  GateDropout<T> dropout;
  const T* x = nullptr;   // [rows, I] by input_row
  const T* h0 = nullptr;  // [B, P]
  const T* c0 = nullptr;  // [B, H]; of an LSTM
  // Out. Rows without an entry are not touched.
  T* h = nullptr;  // [rows, P] by output_row, h_stride apart
  int64_t h_stride = 0;
  StepRows<T> steps;     // any of them may be null
  T* final_c = nullptr;  // [B, H] or null; of an LSTM
};

template <class T>
struct RnnBackward {
  RnnConfig config;
  const Schedule* schedule = nullptr;
  RnnWeights<const T> weights;
  GateDropout<T> dropout;
  const T* x = nullptr;
  const T* h0 = nullptr;
  const T* c0 = nullptr;
  // What the forward pass left. An LSTM's co may be null: tanh(cs) is taken
  // again.
  const T* h = nullptr;
  int64_t h_stride = 0;  // of h and h_bar
  StepRows<const T> steps;
  // Upstream gradients by output_row; null counts as zero.
  const T* h_bar = nullptr;
  StepRows<const T> bar;
  // In: gradients of the final states; out: of the initial ones. [B, P], [B, H]
  T* dh = nullptr;
  T* dc = nullptr;               // of an LSTM
  bool wants_initial_dh = true;  // else dh is left undefined
  // Out. Null where not wanted; peepholes are written where there are any.
  RnnWeights<T> gradients;
  T* dx = nullptr;  // [rows, I] by input_row; other rows not touched
  bool adds_to_dx = false;
  // [V, 4, H], an LSTM's pre-activations in the order i, c, f, o; or null.
  T* dz = nullptr;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_RNN_H_
