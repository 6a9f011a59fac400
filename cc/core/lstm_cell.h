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

#define TF_LSTM_OPS_INLINE inline __attribute__((always_inline))

namespace tf_lstm_ops {

// Math supplies `Value` (a number or a SIMD vector of them) with the usual
// operators, and static Sigmoid, Tanh, Min and Max on it, the last two passing
// NaN of their first argument on.
template <class Math>
struct LstmCell {
  using V = typename Math::Value;

  struct Gates {
    V i, c, f, o;
  };
  struct Peephole {
    V i, f, o;  // wci, wcf, wco
  };
  struct Outputs {
    V i, cs, f, o, ci, co, h;
  };
  struct Gradients {
    Gates z;  // of the pre-activations
    V cs_prev;
  };

  // z already contains bias and forget_bias. No clipping where clip is null.
  static TF_LSTM_OPS_INLINE Outputs Forward(const Gates& z, V cs_prev,
                                            const Peephole* peephole,
                                            const V* clip) {
    Outputs y;
    y.i = Math::Sigmoid(peephole ? z.i + peephole->i * cs_prev : z.i);
    y.f = Math::Sigmoid(peephole ? z.f + peephole->f * cs_prev : z.f);
    y.ci = Math::Tanh(z.c);
    y.cs = y.i * y.ci + y.f * cs_prev;
    if (clip) y.cs = Math::Min(Math::Max(y.cs, -*clip), *clip);
    y.co = Math::Tanh(y.cs);
    y.o = Math::Sigmoid(peephole ? z.o + peephole->o * y.cs : z.o);
    y.h = y.o * y.co;
    return y;
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
                                               const Peephole* peephole) {
    Gradients d;
    d.z.o = (y.o - y.o * y.o) * (bar.h * y.co + bar.o);
    V dcs = (bar.h * y.o + bar.co) * (1 - y.co * y.co) + bar.cs;
    if (peephole) dcs = dcs + peephole->o * d.z.o;
    d.z.c = (1 - y.ci * y.ci) * (dcs * y.i + bar.ci);
    d.z.f = (y.f - y.f * y.f) * (dcs * cs_prev + bar.f);
    d.z.i = (y.i - y.i * y.i) * (dcs * y.ci + bar.i);
    d.cs_prev = dcs * y.f;
    if (peephole) {
      d.cs_prev = d.cs_prev + peephole->i * d.z.i + peephole->f * d.z.f;
    }
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LSTM_CELL_H_
