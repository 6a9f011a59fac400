// The equations of the LSTM cell with other activation functions than the
// logistic function and tanh, forward and backward. Only the CPU backend has
// this cell.
//
// Notation as in lstm_cell.h; a is the activation of the three gates, g that of
// the candidate and of the cell state:
//
//   i  = a(zi + wci * cs_prev)              ci = g(zc)
//   f  = a(zf + forget_bias + wcf * cs_prev)
//   cs = clip(i * ci + f * cs_prev)         co = g(cs)
//   o  = a(zo + wco * cs)                   h  = o * co
//
// Source: Keras' LSTM, with `recurrent_activation` a and `activation` g.
#ifndef TF_LSTM_OPS_CORE_ACTIVATION_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_ACTIVATION_LSTM_CELL_H_

#include "core/lstm_cell.h"
#include "core/unit_activation.h"

namespace tf_lstm_ops {

template <class Math>
struct ActivationLstmCell : LstmCell<Math> {
  using Base = LstmCell<Math>;
  using Base::kPreActivations;
  using typename Base::Gradients;
  using typename Base::Parameters;
  using typename Base::V;
  using Functions = UnitActivationMath<Math>;

  // The outputs, and in the backward pass the derivatives of the activations.
  struct Outputs : Base::Outputs {
    V slope[kPreActivations];
    V state_slope;
  };

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kPreActivations],
                                            V cs_prev, const Parameters& with) {
    Outputs y = Gates(z, cs_prev, with);
    Output(z, cs_prev, with, &y);
    return y;
  }
  // Where the derivative of an activation needs the argument, the outputs i, f,
  // ci and o of the forward pass are the arguments instead of the values.
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations],
                                          V cs_prev, const Parameters& with) {
    const UnitActivations& a = with.options->unit_activations;
    const V* w = with.peephole;
    const V zi = w ? z[kGateI] + w[kGateI] * cs_prev : z[kGateI];
    const V zf = w ? z[kGateF] + w[kGateF] * cs_prev : z[kGateF];
    const V i = Functions::Activate(a.gate, zi);
    const V f = Functions::Activate(a.gate, zf);
    const V ci = Functions::Activate(a.state, z[kGateC]);
    Outputs y = {};
    y.cs = Base::Clip(i * ci + f * cs_prev, with);
    y.i = NeedsArgument(a.gate) ? zi : i;
    y.f = NeedsArgument(a.gate) ? zf : f;
    y.ci = NeedsArgument(a.state) ? z[kGateC] : ci;
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&z)[kPreActivations], V,
                                        const Parameters& with, Outputs* y) {
    const UnitActivations& a = with.options->unit_activations;
    const V* w = with.peephole;
    const V zo = w ? z[kGateO] + w[kGateO] * y->cs : z[kGateO];
    const V o = Functions::Activate(a.gate, zo);
    y->co = Functions::Activate(a.state, y->cs);
    y->h = o * y->co;
    y->o = NeedsArgument(a.gate) ? zo : o;
  }

  // Sets the values and the derivatives from the saved outputs.
  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool,
                                         const Parameters& with) {
    const UnitActivations& a = with.options->unit_activations;
    const auto restore = [&](LstmGate p, V* output) {
      const auto found =
          Functions::Restore(p == kGateC ? a.state : a.gate, *output);
      *output = found.value;
      y->slope[p] = found.slope;
    };
    restore(kGateI, &y->i);
    restore(kGateF, &y->f);
    restore(kGateC, &y->ci);
    restore(kGateO, &y->o);
    y->co = Functions::Activate(a.state, y->cs);
    y->state_slope =
        Functions::Restore(a.state, NeedsArgument(a.state) ? y->cs : y->co)
            .slope;
  }

  // As LstmCell::Backward, with a' and g', the derivatives of the activations,
  // in place of those of the logistic function and of tanh. `y` has been
  // restored.
  static TF_LSTM_OPS_INLINE Gradients
  Backward(const Outputs& y, V cs_prev, const typename Base::Outputs& grad,
           const Parameters& with) {
    const V* w = with.peephole;
    Gradients d;
    d.z[kGateO] = y.slope[kGateO] * (grad.h * y.co + grad.o);
    V dcs = (grad.h * y.o + grad.co) * y.state_slope + grad.cs;
    if (w) dcs = dcs + w[kGateO] * d.z[kGateO];
    d.z[kGateC] = y.slope[kGateC] * (dcs * y.i + grad.ci);
    d.z[kGateF] = y.slope[kGateF] * (dcs * cs_prev + grad.f);
    d.z[kGateI] = y.slope[kGateI] * (dcs * y.ci + grad.i);
    d.state = dcs * y.f;
    if (w) {
      d.state = d.state + w[kGateI] * d.z[kGateI] + w[kGateF] * d.z[kGateF];
    }
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_ACTIVATION_LSTM_CELL_H_
