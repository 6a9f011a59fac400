// The equations of the LSTM cells, forward and backward. All backends compile
// this text.
//
// Notation: z pre-activation, * elementwise product, dv the gradient of the
// loss with respect to v; a_i, a_c, a_f and a_o are the activations of the
// gates, g is that of the cell state:
//
//   i  = a_i(zi + wci * cs_prev)             ci = a_c(zc [+ wcc * cs_prev])
//   f  = a_f(zf + forget_bias + wcf * cs_prev)
//   cs = clip(i * ci + f * cs_prev)          co = g(cs)
//   o  = a_o(zo + wco * s)                   h  = o * co
//
// The peephole terms (wci, wcc, wcf, wco) are optional. There are three cells:
//
//   LstmCell            a_i, a_f, a_o: the logistic function; a_c, g: tanh.
//                       Three peepholes; s is the new, clipped cs.
//   ActivationLstmCell  any activations; peepholes as above
//   CustomLstmCell      any activations; four peepholes; s is cs_prev
//
// Sources: F. Gers, J. Schmidhuber, "Recurrent nets that time and count"
// (2000), in the form of TensorFlow's LSTMBlockCell; Keras' LSTM with
// `recurrent_activation` a and `activation` a_c = g; Apple's documentation of
// MPSGraphLSTMDescriptor and of MPSGraph's LSTM methods.
#ifndef TF_LSTM_OPS_CORE_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_LSTM_CELL_H_

#include "core/cell_activations.h"
#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Indices of SavedActivations.
enum LstmSaved { kSavedI, kSavedCs, kSavedF, kSavedO, kSavedCi, kSavedCo };

// The saved activation that is the gate's own value, by LstmGate.
constexpr LstmSaved kSavedOfGate[] = {kSavedI, kSavedCi, kSavedF, kSavedO};

// A cell. The members are the interface of all cells; the other headers of
// cells refer to them here. Math supplies `Value` (a scalar, a SIMD vector or a
// tensor of a graph) with the arithmetic operators, and static functions
// Sigmoid, Tanh, IfPositive(condition, yes, no), Min and Max. Min and Max
// return NaN if their first argument is NaN. `kNewStateGate` is the gate whose
// peephole reads the new state; the candidate then has no peephole. It is -1
// where all four gates have peepholes that read the previous state.
template <class Math, class Activations, int kNewStateGate>
struct LstmCellOf {
  using V = typename Math::Value;

  // Pre-activations [0, kInputPreActivations) have input weights. The
  // kRecurrentPreActivations from kFirstRecurrent on have recurrent weights.
  static constexpr int kGates = 4;
  static constexpr int kPreActivations = 4;
  static constexpr int kInputPreActivations = 4;
  static constexpr int kFirstRecurrent = 0;
  static constexpr int kRecurrentPreActivations = 4;
  // A step reads the previous step's state, besides the recurrent product.
  static constexpr bool kHasState = true;
  // That state is a cell state of its own (cs); else it is h.
  static constexpr bool kHasCellState = true;
  static constexpr bool kHasForgetBias = true;
  static constexpr bool kHasPeephole = true;
  static constexpr bool kHasOutputGate = true;  // h = o * co
  // The equations of a unit read sums over all units of its row.
  static constexpr bool kReducesRows = false;
  // The equations have two parts. The second part reads m R of the candidate,
  // where m is a result of the first part.
  static constexpr bool kResetsBefore = false;
  // CellOptions::activations selects the activations.
  static constexpr bool kSelectsActivations = Activations::kSelected;
  static constexpr int kNewStatePeephole = kNewStateGate;

  using Parameters = CellParameters<V>;
  struct Outputs {
    V i, cs, f, o, ci, co, h;
  };
  struct Gradients {
    V z[kPreActivations];
    V state;  // with respect to cs_prev
  };
  // Outputs that the forward pass saves, by index of SavedActivations. Where
  // the derivative of an activation needs the argument, the outputs i, f, ci
  // and o are the arguments instead of the values.
  static constexpr int kSavedCount = 6;
  static constexpr int kSavedForBackward = 5;  // co is computed again
  static constexpr V Outputs::* kSaved[kSavedCount] = {
      &Outputs::i, &Outputs::cs, &Outputs::f,
      &Outputs::o, &Outputs::ci, &Outputs::co};
  static constexpr V Outputs::* kState = &Outputs::cs;

  // Returns the outputs of one step. `z` includes the biases and forget_bias.
  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kPreActivations],
                                            V cs_prev, const Parameters& with) {
    Outputs y = Gates(z, cs_prev, with);
    Output(z, cs_prev, with, &y);
    return y;
  }

  // The two parts of Forward. Without peepholes, an activation function of a
  // part depends on no other one of this part. With many rows, the first part
  // is computed for all of them before the second one, so that the latencies
  // overlap.
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations],
                                          V cs_prev, const Parameters& with) {
    Outputs y;
    y.i = Gate(kGateI, z, cs_prev, with);
    y.f = Couples(with) ? 1 - y.i : Gate(kGateF, z, cs_prev, with);
    y.ci = Gate(kGateC, z, cs_prev, with);
    y.cs = Clip(y.i * y.ci + y.f * cs_prev, with);
    y.o = Gate(kGateO, z, kNewStateGate == kGateO ? y.cs : cs_prev, with);
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&z)[kPreActivations],
                                        V cs_prev, const Parameters& with,
                                        Outputs* y) {
    y->co = Activations::State(y->cs, with.options);
    y->h = y->o * y->co;
    // From here on, outputs may be the arguments of their activations.
    const auto save = [&](LstmGate p, V state, V* output) {
      if (!Activations::SavesArgument(p, with.options)) return;
      *output = Argument(p, z, state, with);
    };
    save(kGateI, cs_prev, &y->i);
    save(kGateF, cs_prev, &y->f);
    save(kGateC, cs_prev, &y->ci);
    save(kGateO, kNewStateGate == kGateO ? y->cs : cs_prev, &y->o);
  }

  // Computes the output that was not saved: co, unless `has_co`.
  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool has_co,
                                         const Parameters& with) {
    if (!has_co) y->co = Activations::State(y->cs, with.options);
  }
  // h of restored outputs.
  static TF_LSTM_OPS_INLINE V Hidden(const Outputs& y, const Parameters& with) {
    return Activations::RestoreGate(kGateO, y.o, with.options).value * y.co;
  }

  // Returns the gradients of the loss with respect to z and cs_prev. `y` has
  // the restored outputs of Forward; y.h is not read. `grad` has the gradients
  // of the loss with respect to these outputs. a' and g' are derivatives. The
  // clip has the gradient 1 (straight-through), as in TensorFlow's
  // LSTMBlockCellGrad:
  //
  //   dzo = a_o' * (grad.h * co + grad.o)
  //   dcs = g' * (grad.h * o + grad.co) + grad.cs [+ wco * dzo]
  //   dzc = a_c' * (dcs * i + grad.ci)
  //   dzf = a_f' * (dcs * cs_prev + grad.f)
  //   dzi = a_i' * (dcs * ci + grad.i)
  //   dcs_prev = dcs * f + the peepholes that read cs_prev times their dz
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V cs_prev,
                                               const Outputs& grad,
                                               const Parameters& with) {
    Gradients d;
    V dcs = OutputBackward(y, grad, with, &d.z[kGateO]) + grad.cs;
    if (kNewStateGate == kGateO && with.peephole) {
      dcs = dcs + with.peephole[kGateO] * d.z[kGateO];
    }
    StateBackward(y, cs_prev, grad, dcs, with, &d);
    return d;
  }

  // The two parts of Backward. Between them, layer normalisation changes dcs.
  // The first one sets dzo and returns g' * (grad.h * o + grad.co).
  static TF_LSTM_OPS_INLINE V OutputBackward(const Outputs& y,
                                             const Outputs& grad,
                                             const Parameters& with, V* zo) {
    const auto o = Activations::RestoreGate(kGateO, y.o, with.options);
    *zo = o.slope * (grad.h * y.co + grad.o);
    return Activations::StateSlope(y.cs, y.co, with.options) *
           (grad.h * o.value + grad.co);
  }
  static TF_LSTM_OPS_INLINE void StateBackward(const Outputs& y, V cs_prev,
                                               const Outputs& grad, V dcs,
                                               const Parameters& with,
                                               Gradients* d) {
    const auto i = Activations::RestoreGate(kGateI, y.i, with.options);
    const auto f = Activations::RestoreGate(kGateF, y.f, with.options);
    const auto ci = Activations::RestoreGate(kGateC, y.ci, with.options);
    d->z[kGateC] = ci.slope * (dcs * i.value + grad.ci);
    d->z[kGateF] = f.slope * (dcs * cs_prev + grad.f);
    d->z[kGateI] = i.slope * (dcs * ci.value + grad.i);
    d->state = dcs * f.value;
    for (int p = 0; with.peephole && p < kPreActivations; ++p) {
      if (p == kNewStateGate || !PeepholeOf(p)) continue;
      d->state = d->state + with.peephole[p] * d->z[p];
    }
  }

  // Clips the cell state to [-clip, clip]. NaN stays NaN.
  static TF_LSTM_OPS_INLINE V Clip(V cs, const Parameters& with) {
    if (!with.clip) return cs;
    return Math::Min(Math::Max(cs, -*with.clip), *with.clip);
  }

 private:
  static TF_LSTM_OPS_INLINE constexpr bool PeepholeOf(int p) {
    return p != kGateC || kNewStateGate < 0;
  }
  static TF_LSTM_OPS_INLINE bool Couples(const Parameters& with) {
    if constexpr (kSelectsActivations) {
      return with.options->activations.couples_forget_gate;
    }
    return false;
  }
  // The argument of a gate's activation, with the state that its peephole
  // reads, and the activation.
  static TF_LSTM_OPS_INLINE V Argument(LstmGate p,
                                       const V (&z)[kPreActivations], V state,
                                       const Parameters& with) {
    if (!with.peephole || !PeepholeOf(p)) return z[p];
    return z[p] + with.peephole[p] * state;
  }
  static TF_LSTM_OPS_INLINE V Gate(LstmGate p, const V (&z)[kPreActivations],
                                   V state, const Parameters& with) {
    return Activations::Gate(p, Argument(p, z, state, with), with.options);
  }
};

template <class Math>
using LstmCell = LstmCellOf<Math, StandardActivations<Math>, kGateO>;
template <class Math>
using ActivationLstmCell = LstmCellOf<Math, SelectedActivations<Math>, kGateO>;
template <class Math>
using CustomLstmCell = LstmCellOf<Math, SelectedActivations<Math>, -1>;

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LSTM_CELL_H_
