// Tests of the cell equations in core/.
#include "core/cells.h"

#include <cmath>
#include <sstream>

#include "core/activation.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/vanilla_rnn_cell.h"
#define TF_LSTM_OPS_SIMD simd_test
#include "backends/cpu/simd/vector/cell.h"
#undef TF_LSTM_OPS_SIMD
#include "harness.h"

namespace tf_lstm_ops {
namespace {

struct ScalarMath {
  using Value = double;
  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static double Tanh(double x) { return std::tanh(x); }
  static double Min(double a, double b) { return b < a ? b : a; }
  static double Max(double a, double b) { return a < b ? b : a; }
  static double IfPositive(double condition, double yes, double no) {
    return condition > 0 ? yes : no;
  }
};
using Lstm = LstmCell<ScalarMath>;

template <class C>
double Loss(const typename C::Outputs& y, const typename C::Outputs& grad) {
  double loss = y.h * grad.h;
  if constexpr (C::kSavedCount > 0) {
    for (const auto member : C::kSaved) loss += y.*member * grad.*member;
  }
  return loss;
}

// The derivative of a cell's outputs, seen through the loss `grad`, by each
// part of the pre-activation and by the state, against central differences.
template <class C>
void CheckDerivative(const typename C::Outputs& grad,
                     const typename C::Parameters& with) {
  double z[C::kPreActivations], state = 0.6;
  for (int p = 0; p < C::kPreActivations; ++p) z[p] = 1.1 * p - 0.7;
  const typename C::Outputs y = C::Forward(z, state, with);
  const typename C::Gradients d = C::Backward(y, state, grad, with);
  for (int k = 0; k < C::kPreActivations + (C::kHasState ? 1 : 0); ++k) {
    const double step = 1e-5;
    double* p = k < C::kPreActivations ? &z[k] : &state;
    const double at = *p;
    *p = at + step;
    const double up = Loss<C>(C::Forward(z, state, with), grad);
    *p = at - step;
    const double down = Loss<C>(C::Forward(z, state, with), grad);
    *p = at;
    // Error of the difference: step^2 * third derivative / 6, below 1e-9.
    const double got = k < C::kPreActivations ? d.z[k] : d.state;
    CHECK(std::fabs((up - down) / (2 * step) - got) < 1e-9);
  }
}

TEST(LstmBackwardIsTheDerivative) {
  const Lstm::Outputs grad = {0.5, -1.0, 0.25, 2.0, -0.3, 0.8, 1.5};
  Lstm::Parameters with;
  CheckDerivative<Lstm>(grad, with);
  const double weights[] = {0.7, NAN, -0.4, 1.1};  // there is none of part C
  with.peephole = weights;
  CheckDerivative<Lstm>(grad, with);
}

using Functions = ActivationMath<ScalarMath>;
// Those of MPSGraph.
constexpr Activation kActivations[] = {Activation::kLinear, Activation::kRelu,
                                       Activation::kTanh, Activation::kSigmoid,
                                       Activation::kHardSigmoidFifth};

TEST(GeneralLstmBackwardIsTheDerivative) {
  using General = CustomLstmCell<ScalarMath>;
  const General::Outputs grad = {0.5, -1.0, 0.25, 2.0, -0.3, 0.8, 1.5};
  const double weights[] = {0.7, 0.9, -0.4, 1.1};
  // Each activation in each place, among the other ones.
  for (int first = 0; first < 5; ++first) {
    CellOptions options;
    LstmActivations& activations = options.activations;
    for (int p = 0; p < kMaxPreActivations; ++p) {
      activations.gate[p] = kActivations[(first + p) % 5];
    }
    activations.state = kActivations[(first + kMaxPreActivations) % 5];
    General::Parameters with;
    with.options = &options;
    CheckDerivative<General>(grad, with);
    with.peephole = weights;
    CheckDerivative<General>(grad, with);
  }
}

TEST(GeneralLstmIsTheLstmByDefault) {
  using General = CustomLstmCell<ScalarMath>;
  const CellOptions options;
  const double bound = 0.3, z[] = {0.4, 1.3, -0.2, 0.9};
  General::Parameters with;
  with.options = &options;
  with.clip = &bound;
  const Lstm::Outputs want = Lstm::Forward(z, 0.6, {nullptr, &bound});
  const General::Outputs got = General::Forward(z, 0.6, with);
  for (int k = 0; k < Lstm::kSavedCount; ++k) {
    CHECK_EQ(got.*General::kSaved[k], want.*Lstm::kSaved[k]);
  }
  CHECK_EQ(got.h, want.h);
}

TEST(ActivationsOfMpsgraph) {
  const auto at = [](Activation a, double z) {
    return Functions::Activate(a, z);
  };
  const auto slope = [&](Activation a, double z) {
    return Functions::Restore(a, at(a, z)).slope;
  };
  CHECK_EQ(at(Activation::kLinear, -3), -3);
  CHECK_EQ(at(Activation::kRelu, -3), 0);
  CHECK_EQ(at(Activation::kHardSigmoidFifth, -2.6), 0);
  CHECK_EQ(at(Activation::kHardSigmoidFifth, 0), 0.5);
  CHECK_EQ(at(Activation::kHardSigmoidFifth, 1), 0.7);
  CHECK_EQ(at(Activation::kHardSigmoidFifth, 2.6), 1);
  for (const Activation a : kActivations) {
    CHECK(std::isnan(at(a, NAN)));
    // Differences of fourth order, away from kinks: below 1e-9.
    const double h = 1e-3;
    for (const double z : {-1.9, -0.3, 0.8, 2.1}) {
      const double want = (8 * (at(a, z + h) - at(a, z - h)) -
                           (at(a, z + 2 * h) - at(a, z - 2 * h))) /
                          (12 * h);
      CHECK(std::fabs(slope(a, z) - want) < 1e-9);
    }
  }
  CHECK_EQ(slope(Activation::kRelu, 0), 0);
  CHECK_EQ(slope(Activation::kHardSigmoidFifth, -2.5), 0);
  CHECK_EQ(slope(Activation::kHardSigmoidFifth, 2.5), 0);
}

#define ACTIVATION(name, text) Activation::name,
constexpr Activation kAll[] = {TF_LSTM_OPS_ACTIVATIONS(ACTIVATION)};
#undef ACTIVATION

TEST(ActivationLstmBackwardIsTheDerivative) {
  using Cell = ActivationLstmCell<ScalarMath>;
  const double weights[] = {0.7, NAN, -0.4, 1.1};  // there is none of part C
  for (const Activation state : kAll) {
    for (const Activation gate : kAll) {
      CellOptions options;
      options.activations.gate.fill(gate);
      options.activations.gate[kGateC] = options.activations.state = state;
      for (const double* peephole : {(const double*)nullptr, weights}) {
        Cell::Parameters with;
        with.options = &options;
        with.peephole = peephole;
        double z[] = {0.4, 0.9, -0.2, 1.3}, cs = 0.6;
        const double dh = 0.7, dcs = -1.3;
        const auto loss = [&] {
          const Cell::Outputs y = Cell::Forward(z, cs, with);
          return dh * y.h + dcs * y.cs;
        };
        Cell::Outputs y = Cell::Forward(z, cs, with);
        y.co = NAN;  // not saved
        Cell::Restore(&y, false, with);
        Cell::Outputs grad = {};
        grad.h = dh;
        grad.cs = dcs;
        const Cell::Gradients d = Cell::Backward(y, cs, grad, with);
        for (int k = 0; k < 5; ++k) {
          double* p = k < 4 ? &z[k] : &cs;
          const double step = 1e-5, at = *p;
          *p = at + step;
          const double up = loss();
          *p = at - step;
          const double down = loss();
          *p = at;
          // As in CheckDerivative. No argument lies at a kink.
          const double got = k < 4 ? d.z[k] : d.state;
          CHECK(std::fabs((up - down) / (2 * step) - got) < 1e-9);
        }
      }
    }
  }
}

TEST(ActivationsOfKeras) {
  for (double z = -30; z < 30; z += 0.37) {
    const auto at = [&](Activation a) { return Functions::Activate(a, z); };
    const double gelu = z * std::erfc(-z / std::sqrt(2.0)) / 2;
    // The exponent x^2 of the tail has the relative error 2^-53.
    const double relative = 1e-15 * (1 + z * z);
    CHECK(std::fabs(at(Activation::kGelu) - gelu) <=
          relative * std::fabs(gelu));
    const double elu = z > 0 ? z : std::expm1(z);
    CHECK(std::fabs(at(Activation::kElu) - elu) <= 4e-15 * std::fabs(elu));
  }
  for (const Activation a : kAll) {
    CHECK(std::isnan(Functions::Activate(a, NAN)));
  }
  const auto slope = [](Activation a, double z) {
    const double saved = NeedsArgument(a) ? z : Functions::Activate(a, z);
    return Functions::Restore(a, saved).slope;
  };
  CHECK_EQ(slope(Activation::kRelu, 0), 0);
  CHECK_EQ(slope(Activation::kHardSigmoid, -3), 0);
  CHECK_EQ(slope(Activation::kHardSigmoid, 3), 0);
  CHECK_EQ(slope(Activation::kLeakyRelu, 0), 0.2);
  CHECK_EQ(slope(Activation::kElu, 0), 1);
}

// Calls check(parameters) with each activation of the candidate and the gates.
template <class Cell, class F>
void ForEachActivations(const F& check) {
  for (const Activation candidate : kAll) {
    for (const Activation gate : kAll) {
      CellOptions options;
      options.activations.gate.fill(gate);
      options.activations.gate[kGateC] = candidate;
      typename Cell::Parameters with;
      with.options = &options;
      check(with);
    }
  }
}

TEST(GruBackwardIsTheDerivative) {
  using Gru = GruCell<ScalarMath>;
  CheckDerivative<Gru>({0, 0, 0, 0, 1.5}, {});
  using General = ActivationGruCell<ScalarMath>;
  ForEachActivations<General>([](const General::Parameters& with) {
    CheckDerivative<General>({0, 0, 0, 0, 1.5}, with);
  });
}

// One unit, whose candidate has the recurrent weight `weight`.
template <class Gru>
void CheckResetBefore(const typename Gru::Parameters& with) {
  const double weight = -1.3, dh = 1.5;
  double z[] = {0.4, 0.9, -0.2}, h = 0.6;
  const auto forward = [&] {
    typename Gru::Outputs y = Gru::Gates(z, h, with);
    Gru::Output(z[kGateN] + weight * (y.r * h), h, with, &y);
    y.r = Gru::SavedGate(z[kGateR], y.r, with);
    y.u = Gru::SavedGate(z[kGateU], y.u, with);
    return y;
  };
  const typename Gru::Outputs y = forward();
  typename Gru::Outputs grad = {};
  grad.h = dh;
  typename Gru::Gradients d = Gru::Backward(y, h, grad, with);
  const double dm = weight * d.z[kGateN];
  const auto r = Gru::RestoreReset(y.r, with);
  d.z[kGateR] = Gru::ResetBackward(r, h, dm);
  d.state += r.value * dm;
  for (int k = 0; k < 4; ++k) {
    double* p = k < 3 ? &z[k] : &h;
    const double step = 1e-5, at = *p;
    *p = at + step;
    const double up = forward().h;
    *p = at - step;
    const double down = forward().h;
    *p = at;
    // As in CheckDerivative.
    const double got = k < 3 ? d.z[k] : d.state;
    CHECK(std::fabs(dh * (up - down) / (2 * step) - got) < 1e-9);
  }
}

TEST(ResetBeforeGruBackwardIsTheDerivative) {
  CheckResetBefore<ResetBeforeGruCell<ScalarMath>>({});
  using General = ActivationResetBeforeGruCell<ScalarMath>;
  ForEachActivations<General>(
      [](const General::Parameters& with) { CheckResetBefore<General>(with); });
}

TEST(PlainBackwardIsTheDerivative) {
  using Relu = ReluCell<ScalarMath>;
  CheckDerivative<TanhCell<ScalarMath>>({1.5}, {});
  CheckDerivative<Relu>({1.5}, {});
  const double positive[] = {0.5}, negative[] = {-0.5}, zero[] = {0};
  CHECK_EQ(Relu::Backward(Relu::Forward(positive, 0, {}), 0, {1.5}, {}).z[0],
           1.5);
  CHECK_EQ(Relu::Backward(Relu::Forward(negative, 0, {}), 0, {1.5}, {}).z[0],
           0.0);
  CHECK_EQ(Relu::Backward(Relu::Forward(zero, 0, {}), 0, {1.5}, {}).z[0], 0.0);
}

TEST(CellClips) {
  const double z[] = {3, 3, 3, 3};
  const double bound = 0.5;
  Lstm::Parameters clip;
  clip.clip = &bound;
  CHECK_EQ(Lstm::Forward(z, 2, clip).cs, 0.5);
  CHECK_EQ(Lstm::Forward(z, -9, clip).cs, -0.5);
  CHECK(std::isnan(Lstm::Forward(z, NAN, clip).cs));
  CHECK_EQ(Lstm::Forward(z, 2, clip).co, std::tanh(0.5));
}

// The engine gives a cell the clip and the options whether it reads them or
// not.
template <class Cell>
void CheckParameters() {
  LayerForward<float> layer;
  layer.config.cell_clip = 0.25;
  layer.config.cell_size = 1;
  const simd_test::ParametersAt<float, Cell> at(layer, 0);
  const typename Cell::Parameters& with = at.get();
  CHECK(with.peephole == nullptr);
  CHECK_EQ((*with.clip)[0], 0.25f);
  CHECK(with.options == &layer.config.options);
}

TEST(EveryCellGetsTheClipAndTheOptions) {
#define TF_LSTM_OPS_CHECK_CELL(kind, Cell) \
  CheckParameters<Cell<simd_test::VecMath<float>>>();
  TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CHECK_CELL)
#undef TF_LSTM_OPS_CHECK_CELL
  CheckParameters<ResetBeforeGruCell<simd_test::VecMath<float>>>();
}

}  // namespace
}  // namespace tf_lstm_ops
