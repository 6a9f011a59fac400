// The equations of the LSTM cell with any activations and peepholes of all four
// gates, which all see the previous state. Notation as in lstm_cell.h; a, g are
// the activations of the gates and of the state:
//
//   i = a_i(zi + wci * cs_prev)      ci = a_c(zc + wcc * cs_prev)
//   f = a_f(zf + forget_bias + wcf * cs_prev)
//   o = a_o(zo + wco * cs_prev)
//   cs = clip(i * ci + f * cs_prev)  co = g(cs)    h = o * co
//
// Source: Apple's documentation of MPSGraphLSTMDescriptor and of MPSGraph's
// LSTM methods.
#ifndef TF_LSTM_OPS_CORE_GENERAL_LSTM_CELL_H_
#define TF_LSTM_OPS_CORE_GENERAL_LSTM_CELL_H_

#include "core/activation.h"
#include "core/lstm_cell.h"

namespace tf_lstm_ops {

template <class Math>
struct GeneralLstmCell : LstmCell<Math> {
  using Base = LstmCell<Math>;
  using Base::kParts;
  using typename Base::Gradients;
  using typename Base::Outputs;
  using typename Base::Parameters;
  using typename Base::V;

  static constexpr int kSeesNewState = -1;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kParts], V cs_prev,
                                            const Parameters& with) {
    const auto gate = [&](LstmPart p) {
      return Activate<Math>(
          with.activations->gate[p],
          with.peephole ? z[p] + with.peephole[p] * cs_prev : z[p]);
    };
    Outputs y;
    y.i = gate(kPartI);
    y.f = gate(kPartF);
    y.ci = gate(kPartC);
    y.o = gate(kPartO);
    y.cs = Base::Clip(y.i * y.ci + y.f * cs_prev, with);
    Restore(&y, false, with);
    y.h = y.o * y.co;
    return y;
  }

  static TF_LSTM_OPS_INLINE void Restore(Outputs* y, bool has_co,
                                         const Parameters& with) {
    if (!has_co) y->co = Activate<Math>(with.activations->state, y->cs);
  }

  // With a' as Slope gives it:
  //
  //   dzo = a_o' * (bar.h * co + bar.o)
  //   dcs = g' * (bar.h * o + bar.co) + bar.cs
  //   dzc = a_c' * (dcs * i + bar.ci)
  //   dzf = a_f' * (dcs * cs_prev + bar.f)
  //   dzi = a_i' * (dcs * ci + bar.i)
  //   dcs_prev = dcs * f + wci * dzi + wcc * dzc + wcf * dzf + wco * dzo
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V cs_prev,
                                               const Outputs& bar,
                                               const Parameters& with) {
    const LstmActivations& a = *with.activations;
    Gradients d;
    d.z[kPartO] = Slope<Math>(a.gate[kPartO], y.o) * (bar.h * y.co + bar.o);
    const V dcs = Slope<Math>(a.state, y.co) * (bar.h * y.o + bar.co) + bar.cs;
    d.z[kPartC] = Slope<Math>(a.gate[kPartC], y.ci) * (dcs * y.i + bar.ci);
    d.z[kPartF] = Slope<Math>(a.gate[kPartF], y.f) * (dcs * cs_prev + bar.f);
    d.z[kPartI] = Slope<Math>(a.gate[kPartI], y.i) * (dcs * y.ci + bar.i);
    d.state = dcs * y.f;
    for (int p = 0; with.peephole && p < kParts; ++p) {
      d.state = d.state + with.peephole[p] * d.z[p];
    }
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GENERAL_LSTM_CELL_H_
