// The equations of the LSTM cell, forward and backward: their one place.
//
// Notation: z pre-activation, s(.) logistic, * elementwise; a bar (`Upstream`)
// is the gradient of the loss with respect to an output.
//
//   i  = s(zi + wci * cs_prev)              ci = tanh(zc)
//   f  = s(zf + forget_bias + wcf * cs_prev)
//   cs = clip(i * ci + f * cs_prev)         co = tanh(cs)
//   o  = s(zo + wco * cs)                   h  = o * co
//
// Peephole terms only where asked for. The output gate looks at the new,
// clipped cell state. Source: F. Gers, J. Schmidhuber, "Recurrent nets that
// time and count" (2000), in the form of TensorFlow's LSTMBlockCell.
#ifndef TF_LSTM_OPS_CORE_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_LSTM_CELL_H_

#include "core/activation.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Numbers of StepRows.
enum LstmRow { kRowI, kRowCs, kRowF, kRowO, kRowCi, kRowCo };

// A cell as a backend's passes see it. Math supplies `Value` (a number, a SIMD
// vector of them, or a tensor of a graph) with the usual operators, and static
// Sigmoid, Tanh, IfPositive(condition, yes, no), Min and Max on it, the last
// two passing NaN of their first argument on.
template <class Math>
struct LstmCell {
  using V = typename Math::Value;

  // Parts [0, kInputParts) of the pre-activation have input weights, the
  // kRecurrentParts from kFirstRecurrent on recurrent ones.
  static constexpr int kParts = 4;
  static constexpr int kInputParts = 4;
  static constexpr int kFirstRecurrent = 0;
  static constexpr int kRecurrentParts = 4;
  // Besides through the recurrent weights, a step hands on a state, cs, to the
  // next one directly; it is not the output h itself.
  static constexpr bool kHasState = true;
  static constexpr bool kOwnState = true;
  static constexpr bool kHasPeephole = true;
  // The part whose peephole sees the new state, not the previous one.
  static constexpr int kSeesNewState = kPartO;

  struct Parameters {
    const V* peephole = nullptr;                   // [kParts], by part, or null
    const V* clip = nullptr;                       // no clipping where null
    const LstmActivations* activations = nullptr;  // of a GeneralLstmCell
  };
  struct Outputs {
    V i, cs, f, o, ci, co, h;
  };
  struct Gradients {
    V z[kParts];
    V state;  // of cs_prev
  };
  // What a step keeps for the backward pass, in the order of StepRows.
  static constexpr int kKeptRows = 6;
  static constexpr V Outputs::* kKept[kKeptRows] = {&Outputs::i,  &Outputs::cs,
                                                    &Outputs::f,  &Outputs::o,
                                                    &Outputs::ci, &Outputs::co};
  static constexpr V Outputs::* kState = &Outputs::cs;

  // z already contains bias and forget_bias.
  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kParts], V cs_prev,
                                            const Parameters& with) {
    const V* w = with.peephole;
    Outputs y;
    y.i = Math::Sigmoid(w ? z[kPartI] + w[kPartI] * cs_prev : z[kPartI]);
    y.f = Math::Sigmoid(w ? z[kPartF] + w[kPartF] * cs_prev : z[kPartF]);
    y.ci = Math::Tanh(z[kPartC]);
    y.cs = Clip(y.i * y.ci + y.f * cs_prev, with);
    y.co = Math::Tanh(y.cs);
    y.o = Math::Sigmoid(w ? z[kPartO] + w[kPartO] * y.cs : z[kPartO]);
    y.h = y.o * y.co;
    return y;
  }

  static TF_LSTM_OPS_INLINE V Clip(V cs, const Parameters& with) {
    if (!with.clip) return cs;
    return Math::Min(Math::Max(cs, -*with.clip), *with.clip);
  }

  // What Forward returned beside the rows that were kept.
  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool has_co,
                                         const Parameters&) {
    if (!has_co) y->co = Math::Tanh(y->cs);
  }

  // `y` the outputs of Forward (h is not read), `bar` the gradients of the loss
  // with respect to them. The clip is passed straight through, as in
  // TensorFlow's LSTMBlockCellGrad:
  //
  //   dzo = o(1-o) * (bar.h * co + bar.o)
  //   dcs = (1-co^2) * (bar.h * o + bar.co) + bar.cs + wco * dzo
  //   dzc = (1-ci^2) * (dcs * i + bar.ci)
  //   dzf = f(1-f) * (dcs * cs_prev + bar.f)
  //   dzi = i(1-i) * (dcs * ci + bar.i)
  //   dcs_prev = dcs * f + wci * dzi + wcf * dzf
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V cs_prev,
                                               const Outputs& bar,
                                               const Parameters& with) {
    const V* w = with.peephole;
    Gradients d;
    d.z[kPartO] = (y.o - y.o * y.o) * (bar.h * y.co + bar.o);
    V dcs = (bar.h * y.o + bar.co) * (1 - y.co * y.co) + bar.cs;
    if (w) dcs = dcs + w[kPartO] * d.z[kPartO];
    d.z[kPartC] = (1 - y.ci * y.ci) * (dcs * y.i + bar.ci);
    d.z[kPartF] = (y.f - y.f * y.f) * (dcs * cs_prev + bar.f);
    d.z[kPartI] = (y.i - y.i * y.i) * (dcs * y.ci + bar.i);
    d.state = dcs * y.f;
    if (w)
      d.state = d.state + w[kPartI] * d.z[kPartI] + w[kPartF] * d.z[kPartF];
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LSTM_CELL_H_
