// The equations of the GRU cell whose reset gate acts on the product with the
// recurrent weights, forward and backward: their one place. Notation as in
// core/lstm_cell.h.
//
//   r = s(zr)    u = s(zu)    n = tanh(zn + r * nh)
//   h = (1 - u) * n + u * h_prev
//
// zn comes from the input, nh = R_n h_prev + bR_n from the previous output.
// Source: cuDNN's documentation of CUDNN_GRU; Keras' reset_after=True.
#ifndef TF_LSTM_OPS_CORE_GRU_CELL_H_
#define TF_LSTM_OPS_CORE_GRU_CELL_H_

#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

enum GruRow { kRowR, kRowU, kRowN, kRowNh };

// See LstmCell for what the members mean.
template <class Math>
struct GruCell {
  using V = typename Math::Value;

  static constexpr int kParts = 4;
  static constexpr int kInputParts = 3;
  static constexpr int kFirstRecurrent = 1;
  static constexpr int kRecurrentParts = 3;
  static constexpr bool kHasState = true;
  static constexpr bool kOwnState = false;  // it is h
  static constexpr bool kHasPeephole = false;

  struct Parameters {};
  struct Outputs {
    V r, u, n, nh, h;
  };
  struct Gradients {
    V z[kParts];
    V state;  // of h_prev, but for what goes through the recurrent weights
  };
  static constexpr int kKeptRows = 4;
  static constexpr V Outputs::* kKept[kKeptRows] = {&Outputs::r, &Outputs::u,
                                                    &Outputs::n, &Outputs::nh};
  static constexpr V Outputs::* kState = &Outputs::h;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kParts], V h_prev,
                                            const Parameters&) {
    Outputs y;
    y.r = Math::Sigmoid(z[kPartR]);
    y.u = Math::Sigmoid(z[kPartU]);
    y.nh = z[kPartNh];
    y.n = Math::Tanh(z[kPartN] + y.r * y.nh);
    y.h = (1 - y.u) * y.n + y.u * h_prev;
    return y;
  }

  static TF_LSTM_OPS_INLINE void Restore(Outputs*, bool, const Parameters&) {}

  //   dzu = u(1-u) * (h_prev - n) * bar.h     dzn = (1-n^2) * (1-u) * bar.h
  //   dzr = r(1-r) * nh * dzn                 dnh = r * dzn
  //   dh_prev = u * bar.h
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V h_prev,
                                               const Outputs& bar,
                                               const Parameters&) {
    Gradients d;
    d.z[kPartU] = (y.u - y.u * y.u) * (h_prev - y.n) * bar.h;
    d.z[kPartN] = (1 - y.n * y.n) * ((1 - y.u) * bar.h);
    d.z[kPartR] = (y.r - y.r * y.r) * y.nh * d.z[kPartN];
    d.z[kPartNh] = y.r * d.z[kPartN];
    d.state = y.u * bar.h;
    return d;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GRU_CELL_H_
