// The equations of the GRU cells, forward and backward. Notation as in
// lstm_cell.h. All backends compile this text; only the CPU backend has
// other cells than GruCell.
//
//   r = a(zr)    u = a(zu)    n = g(zn + nr)
//   h = (1 - u) * n + u * h_prev
//
// a is the logistic function and g is tanh, or they are any activations.
//
// The candidate n has an input term, zn = W_n x + bW_n, and a recurrent term
// nr. There are two cells, and Activation- in front of the names of those with
// any activations:
//
//   GruCell             nr = r * nh, where nh = R_n h_prev + bR_n
//   ResetBeforeGruCell  nr = R_n m, where m = r * h_prev
//
// Sources: cuDNN's documentation of CUDNN_GRU, which is Keras'
// reset_after=True. K. Cho et al., "Learning phrase representations using RNN
// encoder-decoder" (2014), which is Keras' reset_after=False.
#ifndef TF_LSTM_OPS_CORE_GRU_CELL_H_
#define TF_LSTM_OPS_CORE_GRU_CELL_H_

#include "core/cell_activations.h"
#include "core/cell_options.h"
#include "core/gate_order.h"
#include "core/macros.h"

namespace tf_lstm_ops {

// Indices of SavedActivations.
enum GruSaved { kSavedR, kSavedU, kSavedN, kSavedNh };

// LstmCell describes the members.
template <class Math, class Activations>
struct GruCellOf {
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
  static constexpr bool kSelectsActivations = Activations::kSelected;

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
                                          const Parameters& with) {
    Outputs y;
    y.r = Activations::Gate(kGateI, z[kGateR], with.options);
    y.u = Activations::Gate(kGateI, z[kGateU], with.options);
    y.nh = z[kGateNh];
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(const V (&z)[kPreActivations], V h_prev,
                                        const Parameters& with, Outputs* y) {
    SetHidden(z[kGateN] + y->r * y->nh, h_prev, with, y);
    // From here on, outputs may be the arguments of their activations.
    if (SavesArgument(kGateI, with)) {
      y->r = z[kGateR];
      y->u = z[kGateU];
    }
  }

  static TF_LSTM_OPS_INLINE void Restore(Outputs*, bool, const Parameters&) {}

  // Arguments as in LstmCell::Backward:
  //
  //   dzu = a'_u * (h_prev - n) * grad.h     dzn = g'_n * (1 - u) * grad.h
  //   dzr = a'_r * nh * dzn                  dnh = r * dzn
  //   dh_prev = u * grad.h
  static TF_LSTM_OPS_INLINE Gradients Backward(const Outputs& y, V h_prev,
                                               const Outputs& grad,
                                               const Parameters& with) {
    const auto r = Activations::RestoreGate(kGateI, y.r, with.options);
    const auto u = Activations::RestoreGate(kGateI, y.u, with.options);
    const auto n = Activations::RestoreGate(kGateC, y.n, with.options);
    Gradients d;
    d.z[kGateU] = u.slope * (h_prev - n.value) * grad.h;
    d.z[kGateN] = n.slope * ((1 - u.value) * grad.h);
    d.z[kGateR] = r.slope * y.nh * d.z[kGateN];
    d.z[kGateNh] = r.value * d.z[kGateN];
    d.state = u.value * grad.h;
    return d;
  }

 protected:
  static TF_LSTM_OPS_INLINE bool SavesArgument(LstmGate p,
                                               const Parameters& with) {
    return Activations::SavesArgument(p, with.options);
  }
  // h, and the candidate n = g(z) as it is saved.
  static TF_LSTM_OPS_INLINE void SetHidden(V z, V h_prev,
                                           const Parameters& with, Outputs* y) {
    y->n = Activations::Gate(kGateC, z, with.options);
    y->h = (1 - y->u) * y->n + y->u * h_prev;
    if (SavesArgument(kGateC, with)) y->n = z;
  }
};

// A step has two products: those of x and of h_prev with the weights of r and
// u, then that of m. With recurrent dropout, m has h_prev after the
// candidate's dropout.
template <class Math, class Activations>
struct ResetBeforeGruCellOf : GruCellOf<Math, Activations> {
  using Base = GruCellOf<Math, Activations>;
  using typename Base::Outputs;
  using typename Base::Parameters;
  using typename Base::V;
  using ValueAndSlope = typename ActivationMath<Math>::ValueAndSlope;

  static constexpr int kPreActivations = 3;
  static constexpr int kRecurrentPreActivations = 2;
  static constexpr bool kResetsBefore = true;
  static constexpr int kSavedCount = 3;
  static constexpr int kSavedForBackward = 3;
  static constexpr V Outputs::* kSaved[kSavedCount] = {&Outputs::r, &Outputs::u,
                                                       &Outputs::n};

  // The two parts of the forward pass. `z` of the second one is zn + R_n m.
  static TF_LSTM_OPS_INLINE Outputs Gates(const V (&z)[kPreActivations], V,
                                          const Parameters& with) {
    Outputs y = {};
    y.r = Activations::Gate(kGateI, z[kGateR], with.options);
    y.u = Activations::Gate(kGateI, z[kGateU], with.options);
    return y;
  }
  static TF_LSTM_OPS_INLINE void Output(V z, V h_prev, const Parameters& with,
                                        Outputs* y) {
    Base::SetHidden(z, h_prev, with, y);
  }
  // What is saved of the reset or the update gate, by its argument and value.
  static TF_LSTM_OPS_INLINE V SavedGate(V z, V value, const Parameters& with) {
    return Base::SavesArgument(kGateI, with) ? z : value;
  }

  // The two parts of the backward pass. The first one is GruCell::Backward,
  // for dzn, dzu and dh_prev. With dm = R_n' dzn and the restored reset gate r,
  // the second one is
  //
  //   dzr = a'_r * h_prev * dm     dh_prev += r * dm
  static TF_LSTM_OPS_INLINE ValueAndSlope RestoreReset(V r,
                                                       const Parameters& with) {
    return Activations::RestoreGate(kGateI, r, with.options);
  }
  static TF_LSTM_OPS_INLINE V ResetBackward(const ValueAndSlope& r, V h_prev,
                                            V dm) {
    return r.slope * h_prev * dm;
  }
};

template <class Math>
using GruCell = GruCellOf<Math, StandardActivations<Math>>;
template <class Math>
using ActivationGruCell = GruCellOf<Math, SelectedActivations<Math>>;
template <class Math>
using ResetBeforeGruCell =
    ResetBeforeGruCellOf<Math, StandardActivations<Math>>;
template <class Math>
using ActivationResetBeforeGruCell =
    ResetBeforeGruCellOf<Math, SelectedActivations<Math>>;

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_GRU_CELL_H_
