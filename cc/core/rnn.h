// What a dialect hands to a backend: one recurrent layer in one direction over
// one batch of sequences. Every pointer states its shape; V is the number of
// entries of the schedule, B its batch, I, H and P the sizes of the input, the
// cell and the output. Nothing here knows TensorFlow or a device.
#ifndef TF_LSTM_OPS_CORE_RNN_H_
#define TF_LSTM_OPS_CORE_RNN_H_

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/activation.h"
#include "core/float16.h"
#include "core/gate_order.h"
#include "core/schedule.h"

namespace tf_lstm_ops {

enum class CellKind : uint8_t { kLstm, kGeneralLstm, kGru, kTanh, kRelu };

constexpr bool IsLstm(CellKind cell) {
  return cell == CellKind::kLstm || cell == CellKind::kGeneralLstm;
}

// Gates that have weights.
constexpr int GateCount(CellKind cell) {
  return IsLstm(cell) ? 4 : cell == CellKind::kGru ? 3 : 1;
}

// Rows of a step that the backward pass needs, besides h; see PackedSteps.
constexpr int SavedRows(CellKind cell) {
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
  LstmActivations activations;  // of a general LSTM
  // Without input weights, the gate in block g sees H columns of x, from column
  // g * x_gate_stride on: with 0 all gates see the same.
  int64_t x_gate_stride = 0;
  // The weights are bfloat16 numbers, as float or as they are. Where the
  // processor multiplies such, x, h and the gradients of the pre-activations
  // are rounded to them before they are multiplied; all else stays float.
  bool bfloat16 = false;

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
  const BFloat16* bfloat16 = nullptr;  // in place of `data`, of const float

  explicit operator bool() const { return data || bfloat16; }
  T* Block(int block) const { return data + block * gate_stride; }

  // Calls f with the pointer to the gate in a block that there is.
  template <class F>
  void Read(int block, const F& f) const {
    if constexpr (std::is_same_v<T, const float>) {
      if (bfloat16) return f(bfloat16 + block * gate_stride);
    }
    f(Block(block));
  }
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
  // [I, H] a gate. Null: x itself is added; see RnnConfig::x_gate_stride.
  GateMatrices<T> input;
  GateMatrices<T> recurrent;    // [P, H] a gate
  GateMatrices<T> projection;   // [H, P], one; where P < H
  T* input_bias = nullptr;      // [gates * H]
  T* recurrent_bias = nullptr;  // [gates * H]
  // [H], by LstmPart, of a general LSTM all four, else not kPartC's; or none.
  // Not with a projection.
  std::array<T*, kMaxParts> peephole = {};

  bool has_peephole() const { return peephole[kPartI] != nullptr; }
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
// row[k] + (compact ? e : output_row[e]) * stride[k].
constexpr int kMaxStepRows = 6;
template <class T>
struct StepRows {
  std::array<T*, kMaxStepRows> row = {};
  std::array<int64_t, kMaxStepRows> stride = {};
  bool compact = false;

  void Set(int k, T* rows, int64_t row_stride) {
    row[k] = rows;
    stride[k] = row_stride;
  }
};

// The rows that a backward pass needs, [V, SavedRows(cell), H].
template <class T>
StepRows<T> PackedSteps(T* data, CellKind cell, int64_t cell_size) {
  StepRows<T> steps;
  steps.compact = true;
  const int rows = SavedRows(cell);
  for (int k = 0; k < rows; ++k) {
    steps.Set(k, data + k * cell_size, rows * cell_size);
  }
  return steps;
}

template <class T>
struct RnnForward {
  RnnConfig config;
  const Schedule* schedule = nullptr;
  RnnWeights<const T> weights;
  GateDropout<T> dropout;
  const T* x = nullptr;  // [rows, I] by input_row, x_stride apart
  int64_t x_stride = 0;
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
  int64_t x_stride = 0;  // of x and dx
  const T* h0 = nullptr;
  const T* c0 = nullptr;
  // What the forward pass left. An LSTM's co may be null, and without a
  // projection its h: they are taken from cs and o again.
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
