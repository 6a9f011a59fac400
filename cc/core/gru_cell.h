// The equations of the GRU cells, forward and backward. Notation as in
// lstm_cell.h. All backends compile this text; only the CPU backend has
// ResetBeforeGruCell.
//
//   r = s(zr)    u = s(zu)    n = tanh(zn + nr)
//   h = (1 - u) * n + u * h_prev
//
// The candidate n has an input term, zn = W_n x + bW_n, and a recurrent term
// nr. There are two cells:
//
//   GruCell             nr = r * nh, where nh = R_n h_prev + bR_n
//   ResetBeforeGruCell  nr = R_n m, where m = r * h_prev
//
// Sources: cuDNN's documentation of CUDNN_GRU, which is Keras'
// reset_after=True. K. Cho et al., "Learning phrase representations using RNN
// encoder-decoder" (2014), which is Keras' reset_after=False.
#ifndef TF_LSTM_OPS_CORE_GRU_CELL_H_
#define TF_LSTM_OPS_CORE_GRU_CELL_H_

#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Indices of SavedActivations.
enum GruSaved { kSavedR, kSavedU, kSavedN, kSavedNh };

// LstmCell describes the members.
template <class Math>
struct GruCell {
  using V = typename Math::Value;

  static constexpr int kGates = 3;
  static constexpr int kPreActivations = 4;
  static constexpr int kInputPreActivations = 3;
  static constexpr int kFirstRecurrent = 1;
  static constexpr int kRecurrentPreActivations = 3;
  static constexpr bool kHasState = true;
  static constexpr bool kHasCellState = false;
  static constexpr bool kHasForgetBias = false;
  static constexpr bool kHasPeephole = false;
  static constexpr bool kHasOutputGate = false;
  static constexpr bool kReducesRows = false;
  static constexpr bool kResetsBefore = false;

  using Parameters = CellParameters<V>;
  struct Outputs {
    V r, u, n, nh, h;
  };
  struct Gradients {
    V z[kPreActivations];
    V state;  // with respect to h_prev, without the recurrent product's term
  };
  static constexpr int kSavedCount = 4;
  static constexpr int kSavedForBackward = 4;
  static constexpr V Outputs::* kSaved[kSavedCount] = {
      &Outputs::r, &Outputs::u, &Outputs::n, &Outputs::nh};
  static constexpr V Outputs::* kState = &Outputs::h;

  static TF_LSTM_OPS_INLINE Outputs Forward(const V (&z)[kPreActivations],
                                            V h_prev, const Parameters& with) {
    Outputs y = Gates(z, h_prev, with);
    Output(z, h_prev, with, &y);
    return y;
  }
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations], V,
                                          const Parameters&) {
    Outputs y;
    y.r = Math::Sigmoid(z[kGateR]);
    y.u = Math::Sigmoid(z[kGateU]);
    y.nh = z[kGateNh];
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&z)[kPreActivations], V h_prev,
                                        const Parameters&, Outputs* y) {
    y->n = Math::Tanh(z[kGateN] + y->r * y->nh);
    y->h = (1 - y->u) * y->n + y->u * h_prev;
  }

  static TF_LSTM_OPS_INLINE void Restore(Outputs*, bool, const Parameters&) {}

  // Arguments as in LstmCell::Backward:
  //
  //   dzu = u(1-u) * (h_prev - n) * grad.h     dzn = (1-n^2) * (1-u) * grad.h
  //   dzr = r(1-r) * nh * dzn                 dnh = r * dzn
  //   dh_prev = u * grad.h
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V h_prev,
                                               const Outputs& grad,
                                               const Parameters&) {
    Gradients d;
    d.z[kGateU] = (y.u - y.u * y.u) * (h_prev - y.n) * grad.h;
    d.z[kGateN] = (1 - y.n * y.n) * ((1 - y.u) * grad.h);
    d.z[kGateR] = (y.r - y.r * y.r) * y.nh * d.z[kGateN];
    d.z[kGateNh] = y.r * d.z[kGateN];
    d.state = y.u * grad.h;
    return d;
  }
};

// A step has two products: those of x and of h_prev with the weights of r and
// u, then that of m. With recurrent dropout, m has h_prev after the
// candidate's dropout.
template <class Math>
struct ResetBeforeGruCell : GruCell<Math> {
  using typename GruCell<Math>::V;
  using typename GruCell<Math>::Parameters;
  using typename GruCell<Math>::Outputs;

  static constexpr int kPreActivations = 3;
  static constexpr int kRecurrentPreActivations = 2;
  static constexpr bool kResetsBefore = true;
  static constexpr int kSavedCount = 3;
  static constexpr int kSavedForBackward = 3;
  static constexpr V Outputs::* kSaved[kSavedCount] = {&Outputs::r, &Outputs::u,
                                                       &Outputs::n};

  // The two parts of the forward pass. `z` of the second one is zn + R_n m.
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations], V,
                                          const Parameters&) {
    Outputs y = {};
    y.r = Math::Sigmoid(z[kGateR]);
    y.u = Math::Sigmoid(z[kGateU]);
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(V z, V h_prev, const Parameters&,
                                        Outputs* y) {
    y->n = Math::Tanh(z);
    y->h = (1 - y->u) * y->n + y->u * h_prev;
  }

  // The two parts of the backward pass. The first one is GruCell::Backward,
  // for dzn, dzu and dh_prev. With dm = R_n' dzn, the second one is
  //
  //   dzr = r(1-r) * h_prev * dm     dh_prev += r * dm
  static TF_LSTM_OPS_INLINE V ResetBackward(V r, V h_prev, V dm,
                                            const Parameters&) {
    return (r - r * r) * h_prev * dm;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GRU_CELL_H_
