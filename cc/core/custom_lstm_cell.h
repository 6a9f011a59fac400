// The equations of the LSTM cell with custom activations, forward and backward.
// All four gates may have a peephole. All peepholes read the previous cell
// state. All backends compile this text.
//
// Notation as in lstm_cell.h; a_i, a_c, a_f and a_o are the activations of the
// gates, g is the activation of the cell state:
//
//   i = a_i(zi + wci * cs_prev)      ci = a_c(zc + wcc * cs_prev)
//   f = a_f(zf + forget_bias + wcf * cs_prev)
//   o = a_o(zo + wco * cs_prev)
//   cs = clip(i * ci + f * cs_prev)  co = g(cs)    h = o * co
//
// Source: Apple's documentation of MPSGraphLSTMDescriptor and of MPSGraph's
// LSTM methods.
#ifndef TF_LSTM_OPS_CORE_CUSTOM_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_CUSTOM_LSTM_CELL_H_

#include "core/activation.h"
#include "core/lstm_cell.h"

namespace tf_lstm_ops {

template <class Math>
struct CustomLstmCell : LstmCell<Math> {
  using Base = LstmCell<Math>;
  using Base::kPreActivations;
  using typename Base::Gradients;
  using typename Base::Outputs;
  using typename Base::Parameters;
  using typename Base::V;

  static constexpr int kNewStatePeephole = -1;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kPreActivations],
                                            V cs_prev, const Parameters& with) {
    Outputs y = Gates(z, cs_prev, with);
    Output(z, cs_prev, with, &y);
    return y;
  }
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations],
                                          V cs_prev, const Parameters& with) {
    const auto gate = [&](LstmGate p) {
      return Activate<Math>(
          with.options->activations.gate[p],
          with.peephole ? z[p] + with.peephole[p] * cs_prev : z[p]);
    };
    Outputs y;
    y.i = gate(kGateI);
    y.f = gate(kGateF);
    y.ci = gate(kGateC);
    y.o = gate(kGateO);
    y.cs = Base::Clip(y.i * y.ci + y.f * cs_prev, with);
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&)[kPreActivations], V,
                                        const Parameters& with, Outputs* y) {
    Restore(y, false, with);
    y->h = y->o * y->co;
  }

  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool has_co,
                                         const Parameters& with) {
    if (!has_co) y->co = Activate<Math>(with.options->activations.state, y->cs);
  }

  // Arguments as in LstmCell::Backward. a' and g' are the derivatives that
  // Slope computes:
  //
  //   dzo = a_o' * (grad.h * co + grad.o)
  //   dcs = g' * (grad.h * o + grad.co) + grad.cs
  //   dzc = a_c' * (dcs * i + grad.ci)
  //   dzf = a_f' * (dcs * cs_prev + grad.f)
  //   dzi = a_i' * (dcs * ci + grad.i)
  //   dcs_prev = dcs * f + wci * dzi + wcc * dzc + wcf * dzf + wco * dzo
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V cs_prev,
                                               const Outputs& grad,
                                               const Parameters& with) {
    const LstmActivations& a = with.options->activations;
    Gradients d;
    d.z[kGateO] = Slope<Math>(a.gate[kGateO], y.o) * (grad.h * y.co + grad.o);
    const V dcs =
        Slope<Math>(a.state, y.co) * (grad.h * y.o + grad.co) + grad.cs;
    d.z[kGateC] = Slope<Math>(a.gate[kGateC], y.ci) * (dcs * y.i + grad.ci);
    d.z[kGateF] = Slope<Math>(a.gate[kGateF], y.f) * (dcs * cs_prev + grad.f);
    d.z[kGateI] = Slope<Math>(a.gate[kGateI], y.i) * (dcs * y.ci + grad.i);
    d.state = dcs * y.f;
    for (int p = 0; with.peephole && p < kPreActivations; ++p) {
      d.state = d.state + with.peephole[p] * d.z[p];
    }
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CUSTOM_LSTM_CELL_H_
