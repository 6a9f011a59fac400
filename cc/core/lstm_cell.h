// The equations of the LSTM cell, forward and backward. All backends compile
// this text.
//
// Notation: z pre-activation, s(.) logistic function, * elementwise product,
// dv the gradient of the loss with respect to v.
//
//   i  = s(zi + wci * cs_prev)              ci = tanh(zc)
//   f  = s(zf + forget_bias + wcf * cs_prev)
//   cs = clip(i * ci + f * cs_prev)         co = tanh(cs)
//   o  = s(zo + wco * cs)                   h  = o * co
//
// The peephole terms (wci, wcf, wco) are optional. The output gate's peephole
// reads the new, clipped cell state. Source: F. Gers, J. Schmidhuber,
// "Recurrent nets that time and count" (2000), in the form of TensorFlow's
// LSTMBlockCell.
#ifndef TF_LSTM_OPS_CORE_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_LSTM_CELL_H_

#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Indices of SavedActivations.
enum LstmSaved { kSavedI, kSavedCs, kSavedF, kSavedO, kSavedCi, kSavedCo };

// The saved activation that is the gate's own value, by LstmGate.
constexpr LstmSaved kSavedOfGate[] = {kSavedI, kSavedCi, kSavedF, kSavedO};

// The LSTM cell. Its members are the interface of all cells; the other headers
// of cells refer to them here. Math supplies `Value` (a scalar, a SIMD vector
// or a tensor of a graph) with the arithmetic operators, and static functions
// Sigmoid, Tanh, IfPositive(condition, yes, no), Min and Max. Min and Max
// return NaN if their first argument is NaN.
template <class Math>
struct LstmCell {
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
  // The gate whose peephole reads the new state, not the previous one.
  static constexpr int kNewStatePeephole = kGateO;

  struct Parameters {
    const V* peephole = nullptr;  // [kPreActivations] by gate; null: none
    const V* clip = nullptr;      // null: no clipping
    const CellOptions* options = nullptr;
  };
  struct Outputs {
    V i, cs, f, o, ci, co, h;
  };
  struct Gradients {
    V z[kPreActivations];
    V state;  // with respect to cs_prev
  };
  // Outputs that the forward pass saves, by index of SavedActivations.
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

  // The two parts of Forward. An activation function of a part depends on no
  // other one of this part. With many rows, the first part is computed for all
  // of them before the second one, so that the latencies overlap.
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations],
                                          V cs_prev, const Parameters& with) {
    const V* w = with.peephole;
    Outputs y;
    y.i = Math::Sigmoid(w ? z[kGateI] + w[kGateI] * cs_prev : z[kGateI]);
    y.f = Math::Sigmoid(w ? z[kGateF] + w[kGateF] * cs_prev : z[kGateF]);
    y.ci = Math::Tanh(z[kGateC]);
    y.cs = Clip(y.i * y.ci + y.f * cs_prev, with);
    y.o = Math::Sigmoid(w ? z[kGateO] + w[kGateO] * y.cs : z[kGateO]);
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&)[kPreActivations], V,
                                        const Parameters&, Outputs* y) {
    y->co = Math::Tanh(y->cs);
    y->h = y->o * y->co;
  }

  // Clips the cell state to [-clip, clip]. NaN stays NaN.
  static TF_LSTM_OPS_INLINE V Clip(V cs, const Parameters& with) {
    if (!with.clip) return cs;
    return Math::Min(Math::Max(cs, -*with.clip), *with.clip);
  }

  // Computes the outputs that were not saved: co, unless `has_co`.
  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool has_co,
                                         const Parameters&) {
    if (!has_co) y->co = Math::Tanh(y->cs);
  }

  // Returns the gradients of the loss with respect to z and cs_prev. `y` has
  // the outputs of Forward; y.h is not read. `grad` has the gradients of the
  // loss with respect to these outputs. The clip has the gradient 1
  // (straight-through), as in TensorFlow's LSTMBlockCellGrad:
  //
  //   dzo = o(1-o) * (grad.h * co + grad.o)
  //   dcs = (1-co^2) * (grad.h * o + grad.co) + grad.cs + wco * dzo
  //   dzc = (1-ci^2) * (dcs * i + grad.ci)
  //   dzf = f(1-f) * (dcs * cs_prev + grad.f)
  //   dzi = i(1-i) * (dcs * ci + grad.i)
  //   dcs_prev = dcs * f + wci * dzi + wcf * dzf
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V cs_prev,
                                               const Outputs& grad,
                                               const Parameters& with) {
    const V* w = with.peephole;
    Gradients d;
    d.z[kGateO] = (y.o - y.o * y.o) * (grad.h * y.co + grad.o);
    V dcs = (grad.h * y.o + grad.co) * (1 - y.co * y.co) + grad.cs;
    if (w) dcs = dcs + w[kGateO] * d.z[kGateO];
    d.z[kGateC] = (1 - y.ci * y.ci) * (dcs * y.i + grad.ci);
    d.z[kGateF] = (y.f - y.f * y.f) * (dcs * cs_prev + grad.f);
    d.z[kGateI] = (y.i - y.i * y.i) * (dcs * y.ci + grad.i);
    d.state = dcs * y.f;
    if (w)
      d.state = d.state + w[kGateI] * d.z[kGateI] + w[kGateF] * d.z[kGateF];
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LSTM_CELL_H_
