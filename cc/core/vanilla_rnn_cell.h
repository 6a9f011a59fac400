// The equations of the vanilla RNN cell, forward and backward: h = tanh(z) or h
// = max(z, 0). All backends compile this text; only the CPU backend has
// ActivationRnnCell, h = g(z), which has no derivatives with respect to a
// function that needs its argument (NeedsArgument).
//
// The gradients, in the notation of lstm_cell.h, are dz = (1 - h^2) * grad.h
// for tanh, and dz = grad.h where h > 0, else 0, for max(z, 0).
//
// Source: J. Elman, "Finding structure in time" (1990); cuDNN's documentation
// of CUDNN_RNN_TANH and CUDNN_RNN_RELU.
#ifndef TF_LSTM_OPS_CORE_VANILLA_RNN_CELL_H_
#define TF_LSTM_OPS_CORE_VANILLA_RNN_CELL_H_

#include "core/cell_activations.h"
#include "core/cell_options.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// LstmCell describes the members.
template <class Math>
struct VanillaRnnCell {
  using V = typename Math::Value;

  static constexpr int kGates = 1;
  static constexpr int kPreActivations = 1;
  static constexpr int kInputPreActivations = 1;
  static constexpr int kFirstRecurrent = 0;
  static constexpr int kRecurrentPreActivations = 1;
  static constexpr bool kHasState = false;
  static constexpr bool kHasCellState = false;
  static constexpr bool kHasForgetBias = false;
  static constexpr bool kHasPeephole = false;
  static constexpr bool kHasOutputGate = false;
  static constexpr bool kReducesRows = false;
  static constexpr bool kResetsBefore = false;
  static constexpr bool kSelectsActivations = false;
  static constexpr int kSavedCount = 0;  // h is enough
  static constexpr int kSavedForBackward = 0;

  using Parameters = CellParameters<V>;
  struct Outputs {
    V h;
  };
  struct Gradients {
    V z[kPreActivations];
    V state;  // not used
  };

  static TF_LSTM_OPS_INLINE void Output(const V (&)[1], V, const Parameters&,
                                        Outputs*) {}
  static TF_LSTM_OPS_INLINE void Restore(Outputs*, bool, const Parameters&) {}
};

template <class Math>
struct TanhCell : VanillaRnnCell<Math> {
  using typename VanillaRnnCell<Math>::V;
  using typename VanillaRnnCell<Math>::Outputs;
  using typename VanillaRnnCell<Math>::Gradients;
  using typename VanillaRnnCell<Math>::Parameters;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[1], V,
                                            const Parameters&) {
    return {Math::Tanh(z[0])};
  }
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[1], V,
                                          const Parameters&) {
    return {Math::Tanh(z[0])};
  }
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V,
                                               const Outputs& grad,
                                               const Parameters&) {
    return {{(1 - y.h * y.h) * grad.h}, V{}};
  }
};

template <class Math>
struct ReluCell : VanillaRnnCell<Math> {
  using typename VanillaRnnCell<Math>::V;
  using typename VanillaRnnCell<Math>::Outputs;
  using typename VanillaRnnCell<Math>::Gradients;
  using typename VanillaRnnCell<Math>::Parameters;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[1], V,
                                            const Parameters&) {
    return {Math::Max(z[0], V{})};
  }
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[1], V,
                                          const Parameters&) {
    return {Math::Max(z[0], V{})};
  }
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V,
                                               const Outputs& grad,
                                               const Parameters&) {
    return {{Math::IfPositive(y.h, grad.h, V{})}, V{}};
  }
};

template <class Math>
struct ActivationRnnCell : VanillaRnnCell<Math> {
  using typename VanillaRnnCell<Math>::V;
  using typename VanillaRnnCell<Math>::Outputs;
  using typename VanillaRnnCell<Math>::Gradients;
  using typename VanillaRnnCell<Math>::Parameters;
  using Activations = SelectedActivations<Math>;

  static constexpr bool kSelectsActivations = true;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[1], V h_prev,
                                            const Parameters& with) {
    return Gates(z, h_prev, with);
  }
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[1], V,
                                          const Parameters& with) {
    return {Activations::Gate(kGateC, z[0], with.options)};
  }
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V,
                                               const Outputs& grad,
                                               const Parameters& with) {
    return {
        {Activations::RestoreGate(kGateC, y.h, with.options).slope * grad.h},
        V{}};
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_VANILLA_RNN_CELL_H_
