// KerasLayer: what a recurrent layer of Keras is to a backend: its
// configuration, the views of its weights, its sequences and its last steps.
// The ops behind tf_lstm_ops.keras and the sessions fill layer directions with
// these functions, so their results are equal bit for bit.
#ifndef TF_LSTM_OPS_CORE_KERAS_LAYER_H_
#define TF_LSTM_OPS_CORE_KERAS_LAYER_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/layer_direction.h"

namespace tf_lstm_ops {

// The arguments of a layer. It has one or two directions.
struct KerasLayer {
  CellKind cell = CellKind::kLstm;  // that with the default activations
  CellOptions options;
  float cell_clip = 0;
  float proj_clip = 0;
  bool go_backwards = false;  // the first direction
  bool zero_output_for_mask = false;
  bool return_sequences = true;
  // Whether sequences of outputs are in the order of computation, else in that
  // of time. A last output is always the one that was computed last.
  bool in_order_of_computation = true;

  bool has_default_activations() const {
    const LstmActivations& f = options.activations;
    return f.state == Activation::kTanh &&
           f.gate[kGateC] == Activation::kTanh &&
           f.gate[kGateI] == Activation::kSigmoid && f.bound == 0 &&
           !f.couples_forget_gate;
  }
  Fill fill() const {
    return zero_output_for_mask ? Fill::kZero : Fill::kPrevious;
  }
};

// The activations of an LSTM or a GRU by the two arguments of a layer.
LstmActivations KerasActivations(Activation activation,
                                 Activation recurrent_activation);

// The cell of a plain RNN by its activation. Only sessions have kActivationRnn.
constexpr CellKind SimpleRnnCell(Activation activation, double bound = 0) {
  if (bound == 0 && activation == Activation::kRelu) return CellKind::kRelu;
  if (bound == 0 && activation == Activation::kTanh) return CellKind::kTanh;
  return CellKind::kActivationRnn;
}

// The configuration of a layer, without sizes.
RnnConfig KerasConfig(const KerasLayer& layer);

// The sequences of a direction, batch-major. `mask` [B, T] is as in Sequence:
// it may be null and is not owned.
Sequence KerasSequence(const KerasLayer& layer, int direction, int64_t batch,
                       int64_t time, const bool* mask);

// The weights of a direction in Keras' layouts, or the gradients with respect
// to them. Null: absent.
template <class T>
struct KerasWeights {
  T* kernel = nullptr;            // [I, gates * H]
  T* recurrent_kernel = nullptr;  // [P, gates * H]
  T* bias = nullptr;              // [gates * H]
  T* recurrent_bias = nullptr;    // [gates * H], of the recurrent product
  T* peephole = nullptr;          // [3, H], rows i, f, o
  T* projection = nullptr;        // [H, P]
  T* input_gamma = nullptr;       // [gates * H]
  T* recurrent_gamma = nullptr;   // [gates * H]
  T* state_gamma = nullptr;       // [H]
  T* state_beta = nullptr;        // [H]
};

// The gates of the rows of the peephole weights.
constexpr std::array<LstmGate, 3> kPeepholeGates = {kGateI, kGateF, kGateO};

// Views of the weights of a layer with this configuration.
template <class T>
RnnWeights<T> ViewsOf(const KerasWeights<T>& keras, const RnnConfig& config) {
  const int64_t cell = config.cell_size;
  const int gates = GateCount(config.cell);
  RnnWeights<T> views;
  views.input = ByInput(keras.kernel, gates, cell);
  views.recurrent = ByInput(keras.recurrent_kernel, gates, cell);
  if (keras.projection) {
    views.projection = ByInput(keras.projection, 1, config.hidden_size);
  }
  views.input_bias = keras.bias;
  views.recurrent_bias = keras.recurrent_bias;
  for (size_t n = 0; keras.peephole && n < kPeepholeGates.size(); ++n) {
    views.peephole[kPeepholeGates[n]] =
        keras.peephole + static_cast<int64_t>(n) * cell;
  }
  views.input_scale = keras.input_gamma;
  views.recurrent_scale = keras.recurrent_gamma;
  views.state_scale = keras.state_gamma;
  views.state_offset = keras.state_beta;
  return views;
}

// Copies the last of each row's steps, h [B, T, P], to rows of P elements that
// are `stride` apart; zeros where T is 0. `width` is P.
template <class T>
void CopyLastSteps(const T* h, int64_t batch, int64_t time, int64_t width,
                   T* to, int64_t stride) {
  for (int64_t b = 0; b < batch; ++b, to += stride) {
    if (time == 0) {
      std::fill_n(to, width, T{});
    } else {
      std::copy_n(h + (b * time + time - 1) * width, width, to);
    }
  }
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_KERAS_LAYER_H_
