// What a dialect hands to a backend: one LSTM layer over one batch of
// sequences. Every pointer states its shape; V is the number of entries of the
// schedule, B its batch. Nothing here knows TensorFlow or a device.
#ifndef TF_LSTM_OPS_CORE_LSTM_H_
#define TF_LSTM_OPS_CORE_LSTM_H_

#include <cstdint>

#include "core/gate_order.h"
#include "core/schedule.h"

namespace tf_lstm_ops {

struct LstmConfig {
  int64_t input_size = 0;
  int64_t cell_size = 0;
  GateOrder gate_order = kOrderICFO;
  double forget_bias = 0;
  double cell_clip = 0;  // clips cs to [-cell_clip, cell_clip] where positive
};

template <class T>
struct LstmWeights {
  const T* input = nullptr;      // [I, 4H]
  const T* recurrent = nullptr;  // [H, 4H]
  const T* bias = nullptr;       // [4H] or null
  const T* wci = nullptr;        // [H]; all three, or null: no peepholes
  const T* wcf = nullptr;
  const T* wco = nullptr;

  bool has_peephole() const { return wci != nullptr; }
};

// Multipliers of the input and of the previous output, one set for each gate in
// the order of the weights, the same in every step ("variational" dropout).
template <class T>
struct GateDropout {
  const T* input = nullptr;      // [4, B, I] or null
  const T* recurrent = nullptr;  // [4, B, H] or null
};

// One row of H numbers for each entry of a schedule. Row of entry e:
// data + (compact ? e : output_row[e]) * stride.
template <class T>
struct StepRows {
  T* i = nullptr;
  T* cs = nullptr;
  T* f = nullptr;
  T* o = nullptr;
  T* ci = nullptr;
  T* co = nullptr;
  int64_t stride = 0;
  bool compact = false;
};

template <class T>
struct LstmForward {
  LstmConfig config;
  const Schedule* schedule = nullptr;
  LstmWeights<T> weights;
  GateDropout<T> dropout;
  const T* x = nullptr;   // [rows, I]
  const T* h0 = nullptr;  // [B, H]
  const T* c0 = nullptr;  // [B, H]
  // Out. Rows without an entry are not touched.
  T* h = nullptr;        // [rows, H], by output_row
  StepRows<T> steps;     // any of them may be null
  T* final_c = nullptr;  // [B, H] or null
};

template <class T>
struct LstmBackward {
  LstmConfig config;
  const Schedule* schedule = nullptr;
  LstmWeights<T> weights;
  GateDropout<T> dropout;
  const T* x = nullptr;
  const T* h0 = nullptr;
  const T* c0 = nullptr;
  // What the forward pass left. co may be null: tanh(cs) is taken again.
  const T* h = nullptr;
  StepRows<const T> steps;
  // Upstream gradients by output_row, [rows, H]; null counts as zero.
  const T* h_bar = nullptr;
  StepRows<const T> bar;
  // In: gradients of the final states; out: of the initial ones. [B, H]
  T* dh = nullptr;
  T* dc = nullptr;
  bool wants_initial_dh = true;  // else dh is left undefined
  // Out. Null where not wanted.
  T* dx = nullptr;          // [rows, I] by input_row; other rows not touched
  T* dinput = nullptr;      // [I, 4H]
  T* drecurrent = nullptr;  // [H, 4H]
  T* dbias = nullptr;       // [4H]
  T* dwci = nullptr;        // [H]; written with peepholes only
  T* dwcf = nullptr;
  T* dwco = nullptr;
  T* dz = nullptr;  // [V, 4H], pre-activations in the engine's order; required
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LSTM_H_
