// Tests of cc/core and of the thread team, without TensorFlow.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/thread_team.h"
#include "core/float16.h"
#include "core/gate_order.h"
#include "core/custom_lstm_cell.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/vanilla_rnn_cell.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"
#include "core/shape.h"
#include "core/signature.h"
#include "harness.h"

namespace tf_lstm_ops {
namespace {

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 kIH = Extent::kInputPlusCell;

Signature TestSignature() {
  return {"Test",
          {},
          {{"n", Dims(), "int64"},
           {"x", {kT, kB, kI}},
           {"c", {kB, kH}},
           {"w", {kIH, k4H}},
           {"p", {kH}, "T", true}},
          {{"y", {kT, kB, kH}}}};
}

Shape S(std::vector<int64_t> dims) { return Shape(dims); }

TEST(ShapePrintsUnknowns) {
  CHECK_EQ(Shape().ToString(), "<unknown>");
  CHECK_EQ(S({}).ToString(), "[]");
  CHECK_EQ(S({2, kUnknown, 3}).ToString(), "[2,?,3]");
}

TEST(CheckedProductSeesOverflowBehindZero) {
  int64_t product = -1;
  CHECK(CheckedProduct({3, 4, 5}, &product) && product == 60);
  CHECK(CheckedProduct({3, 0, 5}, &product) && product == 0);
  CHECK(!CheckedProduct({int64_t{1} << 62, 2}, &product));
  CHECK(!CheckedProduct({int64_t{1} << 62, 0, 2}, &product));
}

TEST(CheckInputsFindsSizes) {
  Sizes sizes;
  const Status status =
      CheckInputs(TestSignature(),
                  {S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({5})}, &sizes);
  CHECK_EQ(status.message(), "");
  CHECK(status.ok());
  CHECK(sizes.time == 7 && sizes.batch == 2 && sizes.input == 3 &&
        sizes.cell == 5);
  CHECK_EQ(OutputShape(TestSignature().outputs[0], sizes).ToString(),
           "[7,2,5]");
}

TEST(CheckInputsNamesTheArgument) {
  const struct {
    std::vector<Shape> inputs;
    const char* message;
  } cases[] = {
      {{S({1}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({5})},
       "n must be rank 0 but is rank 1"},
      {{S({}), S({7, 2}), S({2, 5}), S({8, 20}), S({5})},
       "x must be rank 3 but is rank 2"},
      {{S({}), S({7, 2, 3}), S({3, 5}), S({8, 20}), S({5})},
       "c.dim_size(0) != batch_size: 3 vs. 2"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({9, 20}), S({5})},
       "w.dim_size(0) != input_size + cell_size: 9 vs. 8"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({8, 21}), S({5})},
       "w.dim_size(1) != cell_size * 4: 21 vs. 20"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({4})},
       "p.dim_size(0) != cell_size: 4 vs. 5"},
      {{S({}), S({7, 2, 3}), S({2, 0}), S({3, 0}), S({0})},
       "c is empty, has shape: [2,0]"},
  };
  for (const auto& c : cases) {
    Sizes sizes;
    const Status status = CheckInputs(TestSignature(), c.inputs, &sizes);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK_EQ(status.message(), c.message);
  }
}

TEST(CheckInputsPassesUnknowns) {
  Sizes sizes;
  CHECK(CheckInputs(TestSignature(),
                    {Shape(), S({kUnknown, 2, kUnknown}), S({kUnknown, 5}),
                     Shape(), Shape()},
                    &sizes)
            .ok());
  CHECK(sizes.time == kUnknown && sizes.batch == 2 && sizes.cell == 5);
  CHECK(!CheckInputs(
             TestSignature(),
             {Shape(), S({kUnknown, 2, kUnknown}), S({3, 5}), Shape(), Shape()},
             &sizes)
             .ok());
}

TEST(CheckInputsTakesAbsentOptional) {
  Sizes sizes;
  CHECK(CheckInputs(TestSignature(),
                    {S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({0})},
                    &sizes)
            .ok());
}

TEST(CheckInputsRefusesOverflow) {
  const int64_t huge = int64_t{1} << 61;
  const std::vector<std::vector<Shape>> cases = {
      {S({}), S({huge, 2, 0}), S({2, 5}), S({5, 20}), S({5})},
      {S({}), S({1, 2, huge}), S({2, 5}), Shape(), S({5})},
      // The sum input_size + cell_size itself does not fit.
      {S({}), S({1, 2, std::numeric_limits<int64_t>::max() - 1}), S({2, 5}),
       Shape(), S({5})},
      {S({}), S({1, 1, 1}), S({1, huge}), Shape(), Shape()},
  };
  for (const auto& inputs : cases) {
    Sizes sizes;
    const Status status = CheckInputs(TestSignature(), inputs, &sizes);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message().find("overflows") != std::string::npos);
  }
}

// Column of a gate in weights [K, gates * H] and its place in [gates, H, K].
TEST(GateMatricesFindAGateInEitherLayout) {
  double data[24] = {};
  constexpr int64_t kInputs = 2, kUnits = 3;
  const auto by_input = ByInput(data, 4, kUnits);
  const auto by_unit = ByUnit(data, kInputs, kUnits);
  const int f = kOrderIFCO.block[kGateF];
  CHECK_EQ(by_input.Block(f) + by_input.row_stride - data, 12 + 3);
  CHECK_EQ(by_input.column_stride, 1);
  CHECK_EQ(by_unit.Block(f) + by_unit.column_stride - data, 6 + 2);
  CHECK_EQ(by_unit.row_stride, 1);
}

TEST(GateOrders) {
  const auto order = [](const GateOrder& gates, std::vector<int> parts) {
    for (int& part : parts) part = gates.block[part];
    return parts;
  };
  const std::vector<int> ifco = {kGateI, kGateF, kGateC, kGateO};
  CHECK(order(kOrderIFCO, ifco) == (std::vector<int>{0, 1, 2, 3}));
  CHECK(order(kOrderICFO, ifco) == (std::vector<int>{0, 2, 1, 3}));
  const std::vector<int> run = {kGateR, kGateU, kGateN};
  CHECK(order(kOrderRUN, run) == (std::vector<int>{0, 1, 2}));
  CHECK(order(kOrderURN, run) == (std::vector<int>{1, 0, 2}));
  CHECK_EQ(kOrderRUN.block[kGateNh], kOrderRUN.block[kGateN]);
  CHECK_EQ(kOrderURN.block[kGateNh], kOrderURN.block[kGateN]);
}

TEST(HalfRoundTripsExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = {static_cast<uint16_t>(bits)};
    const float value = half.ToFloat();
    if (std::isnan(value)) {
      CHECK(std::isnan(Half::FromFloat(value).ToFloat()));
    } else {
      CHECK_EQ(Half::FromFloat(value).bits, half.bits);
    }
  }
}

// The neighbours of a 16-bit value and the points between them tell whether
// rounding is to nearest, ties to even.
template <class Narrow>
void CheckRounding(uint16_t infinity) {
  for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const float low = Narrow{bits}.ToFloat();
    const float high = Narrow{static_cast<uint16_t>(bits + 1)}.ToFloat();
    const float middle = low / 2 + high / 2;
    const float below = std::nextafter(middle, low);
    const float above = std::nextafter(middle, high);
    if (!(low < below && above < high)) continue;  // below float's subnormals
    const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    CHECK_EQ(Narrow::FromFloat(middle).bits, even);
    CHECK_EQ(Narrow::FromFloat(below).bits, bits);
    CHECK_EQ(Narrow::FromFloat(above).bits, bits + 1);
    CHECK_EQ(Narrow::FromFloat(-above).bits, (bits + 1) | 0x8000);
  }
}

TEST(HalfRoundsToNearestEven) { CheckRounding<Half>(0x7c00); }
TEST(BFloat16RoundsToNearestEven) { CheckRounding<BFloat16>(0x7f80); }

TEST(NarrowTypesOverflowToInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK_EQ(Half::FromFloat(65519.9f).ToFloat(), 65504.0f);
  CHECK_EQ(Half::FromFloat(65520.0f).ToFloat(), infinity);
  CHECK_EQ(Half::FromFloat(-infinity).ToFloat(), -infinity);
  CHECK_EQ(BFloat16::FromFloat(infinity).ToFloat(), infinity);
  CHECK(std::isnan(BFloat16::FromFloat(std::nanf("")).ToFloat()));
  CHECK(std::isnan(Half::FromFloat(std::nanf("")).ToFloat()));
}

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

// The derivative of a cell's outputs, seen through the loss `grad`, by each part
// of the pre-activation and by the state, against central differences.
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

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu,
                                       Activation::kTanh, Activation::kSigmoid,
                                       Activation::kHardSigmoid};

TEST(GeneralLstmBackwardIsTheDerivative) {
  using General = CustomLstmCell<ScalarMath>;
  const General::Outputs grad = {0.5, -1.0, 0.25, 2.0, -0.3, 0.8, 1.5};
  const double weights[] = {0.7, 0.9, -0.4, 1.1};
  // Each activation in each place, among the other ones.
  for (int first = 0; first < 5; ++first) {
    LstmActivations activations;
    for (int p = 0; p < kMaxPreActivations; ++p) {
      activations.gate[p] = kActivations[(first + p) % 5];
    }
    activations.state = kActivations[(first + kMaxPreActivations) % 5];
    General::Parameters with;
    with.activations = &activations;
    CheckDerivative<General>(grad, with);
    with.peephole = weights;
    CheckDerivative<General>(grad, with);
  }
}

TEST(GeneralLstmIsTheLstmByDefault) {
  using General = CustomLstmCell<ScalarMath>;
  const LstmActivations activations;
  const double bound = 0.3, z[] = {0.4, 1.3, -0.2, 0.9};
  General::Parameters with;
  with.activations = &activations;
  with.clip = &bound;
  const Lstm::Outputs want = Lstm::Forward(z, 0.6, with);
  const Lstm::Outputs got = General::Forward(z, 0.6, with);
  for (const auto member : Lstm::kSaved) CHECK_EQ(got.*member, want.*member);
  CHECK_EQ(got.h, want.h);
}

TEST(Activations) {
  const auto at = [](Activation a, double z) {
    return Activate<ScalarMath>(a, z);
  };
  const auto slope = [&](Activation a, double z) {
    return Slope<ScalarMath>(a, at(a, z));
  };
  CHECK_EQ(at(Activation::kNone, -3), -3);
  CHECK_EQ(at(Activation::kRelu, -3), 0);
  CHECK_EQ(at(Activation::kHardSigmoid, -2.6), 0);
  CHECK_EQ(at(Activation::kHardSigmoid, 0), 0.5);
  CHECK_EQ(at(Activation::kHardSigmoid, 1), 0.7);
  CHECK_EQ(at(Activation::kHardSigmoid, 2.6), 1);
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
  CHECK_EQ(slope(Activation::kHardSigmoid, -2.5), 0);
  CHECK_EQ(slope(Activation::kHardSigmoid, 2.5), 0);
}

TEST(GruBackwardIsTheDerivative) {
  using Gru = GruCell<ScalarMath>;
  CheckDerivative<Gru>({0, 0, 0, 0, 1.5}, {});
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

TEST(TimeMajorSchedule) {
  const PackedSequence s = PackedSequence::TimeMajor(2, 3);
  CHECK_EQ(s.size(), 6);
  CHECK(s.begin == (std::vector<int64_t>{0, 3, 6}));
  CHECK(s.previous == (std::vector<int64_t>{-1, -1, -1, 0, 1, 2}));
  CHECK(s.output_row == (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  CHECK(s.last == (std::vector<int64_t>{3, 4, 5}));
  const PackedSequence r = PackedSequence::TimeMajor(2, 3, true);
  CHECK(r.input_row == (std::vector<int64_t>{3, 4, 5, 0, 1, 2}));
  CHECK(r.output_row == r.input_row);
  CHECK(r.previous == s.previous);
}

TEST(BatchMajorScheduleLeavesMaskedStepsOut) {
  const bool mask[] = {true,  false, true,    // a hole
                       false, false, false};  // nothing
  const PackedSequence s = PackedSequence::BatchMajor(2, 3, mask, false);
  CHECK_EQ(s.size(), 2);
  CHECK(s.begin == (std::vector<int64_t>{0, 1, 1, 2}));
  CHECK(s.batch_row == (std::vector<int64_t>{0, 0}));
  CHECK(s.input_row == (std::vector<int64_t>{0, 2}));
  CHECK(s.previous == (std::vector<int64_t>{-1, 0}));
  CHECK(s.ordinal == (std::vector<int64_t>{0, 1}));
  CHECK(s.last == (std::vector<int64_t>{1, -1}));
}

TEST(LengthsScheduleEndsEachRowAtItsLength) {
  const int64_t lengths[] = {1, 0, 3};
  const PackedSequence s = PackedSequence::Lengths(3, 4, lengths, true, false);
  CHECK(s.begin == (std::vector<int64_t>{0, 2, 3, 4}));
  CHECK(s.batch_row == (std::vector<int64_t>{0, 2, 2, 2}));
  CHECK(s.input_row == (std::vector<int64_t>{0, 2, 5, 8}));
  CHECK(s.output_row == s.input_row);
  CHECK(s.last == (std::vector<int64_t>{0, -1, 3}));
  const PackedSequence r = PackedSequence::Lengths(3, 4, lengths, false, true);
  CHECK(r.batch_row == (std::vector<int64_t>{0, 2, 2, 2}));
  CHECK(r.input_row == (std::vector<int64_t>{0, 10, 9, 8}));
  CHECK(r.previous == (std::vector<int64_t>{-1, -1, 1, 2}));
}

TEST(ReversedScheduleReadsBackwards) {
  const bool mask[] = {true, true, false};
  const PackedSequence s = PackedSequence::BatchMajor(1, 3, mask, true);
  CHECK(s.input_row == (std::vector<int64_t>{1, 0}));
  CHECK(s.output_row == (std::vector<int64_t>{1, 2}));
}

constexpr size_t kMebibyte = size_t{1} << 20;

void* Used(size_t bytes) { return AlignedBuffer(bytes).data(); }

TEST(LargeBuffersAreUsedAgain) {
  void* const used = Used(9 * kMebibyte);
  CHECK(Used(9 * kMebibyte) == used);
  CHECK(Used(3 * kMebibyte) == used);
  const AlignedBuffer first(9 * kMebibyte), second(9 * kMebibyte);
  CHECK(first.data() == used && second.data() != used);
}

TEST(BuffersThatALargerOneServesForAreFreed) {
  {
    const AlignedBuffer small(4 * kMebibyte), smaller(3 * kMebibyte);
  }
  void* const large = Used(9 * kMebibyte);
  for (const size_t size : {3, 4, 9}) CHECK(Used(size * kMebibyte) == large);
}

TEST(BuffersAreNotWastedOnSmallOnes) {
  void* const large = Used(40 * kMebibyte);
  CHECK(Used(3 * kMebibyte) != large);
  CHECK(Used(40 * kMebibyte) == large);
}

// Counts how often each item was done, and that none was done early.
struct Count {
  static constexpr int64_t kPhases = 50;
  std::vector<std::atomic<int>> done;
  std::atomic<int> early{0};

  Count() : done(kPhases * 16) {}
  static int64_t ItemsOf(int64_t phase) {
    return phase % 5 == 3 ? 0 : phase % 16;
  }
  static int64_t Items(const void*, int64_t phase) { return ItemsOf(phase); }
  static void Run(void* state, int64_t phase, int64_t item, int) {
    Count& count = *static_cast<Count*>(state);
    for (int64_t before = 0; before < phase; ++before) {
      for (int64_t k = 0; k < ItemsOf(before); ++k) {
        if (count.done[before * 16 + k].load() != 1) ++count.early;
      }
    }
    ++count.done[phase * 16 + item];
  }
  void Check() const {
    CHECK_EQ(early.load(), 0);
    for (int64_t phase = 0; phase < kPhases; ++phase) {
      for (int64_t item = 0; item < 16; ++item) {
        CHECK_EQ(done[phase * 16 + item].load(), item < ItemsOf(phase) ? 1 : 0);
      }
    }
  }
};

void RunCount(int threads) {
  Count count;
  RunJob({&count, Count::kPhases, &Count::Items, &Count::Run}, threads);
  count.Check();
}

TEST(TeamDoesEachItemOnceAndInOrder) {
  for (int round = 0; round < 200; ++round) {
    for (int threads : {1, 2, 3, 7}) RunCount(threads);
  }
}

TEST(TeamServesConcurrentCallers) {
  std::vector<std::thread> callers;
  for (int k = 0; k < 4; ++k) {
    callers.emplace_back([] {
      for (int round = 0; round < 100; ++round) RunCount(3);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// A call that has the team and one beside it, which wait for each other.
struct Neighbours {
  static constexpr int64_t kPhases = 20;
  std::atomic<bool> team_is_taken{false}, beside_began{false};
  std::atomic<bool> team_is_free{false};
  std::atomic<int> done_by_resting{0}, met{0};

  static int64_t OneItem(const void*, int64_t) { return 1; }
  static int64_t ManyItems(const void*, int64_t phase) {
    return phase == 0 ? 1 : 16;
  }
  static int64_t TwoItems(const void*, int64_t phase) {
    return phase == 0 ? 1 : 2;
  }

  template <class Condition>
  static bool Await(Condition condition) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  static void RunWithTeam(void* state, int64_t phase, int64_t, int thread) {
    auto& self = *static_cast<Neighbours*>(state);
    if (phase == 0) {
      self.team_is_taken = true;
      CHECK(Await([&] { return self.beside_began.load(); }));
    } else if (phase > 1 && thread > 0) {  // in phase 1 it may not know yet
      ++self.done_by_resting;
    }
  }

  static void RunBeside(void* state, int64_t phase, int64_t, int) {
    auto& self = *static_cast<Neighbours*>(state);
    if (phase == 0) {
      self.beside_began = true;
      CHECK(Await([&] { return self.team_is_free.load(); }));
    } else {
      ++self.met;
      CHECK(Await([&] { return self.met == 2; }));
    }
  }
};

TEST(TeamRestsForACallBesideAndServesItThen) {
  for (int round = 0; round < 20; ++round) {
    Neighbours state;
    std::thread with_team([&] {
      RunJob({&state, Neighbours::kPhases, &Neighbours::ManyItems,
              &Neighbours::RunWithTeam},
             2);
      state.team_is_free = true;
    });
    std::thread beside([&] {
      CHECK(Neighbours::Await([&] { return state.team_is_taken.load(); }));
      RunJob({&state, 2, &Neighbours::TwoItems, &Neighbours::RunBeside}, 2);
    });
    with_team.join();
    beside.join();
    CHECK_EQ(state.done_by_resting.load(), 0);
    CHECK_EQ(state.met.load(), 2);
  }
}

TEST(TeamWorksAfterFork) {
  RunCount(3);
  const pid_t child = fork();
  if (child == 0) {
    RunCount(3);
    _exit(0);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  RunCount(3);
}

TEST(TeamTakesJobsWithoutPhases) {
  Count count;
  RunJob({&count, 0, &Count::Items, &Count::Run}, 3);
  RunCount(3);
}

}  // namespace
}  // namespace tf_lstm_ops

int main(int argc, char** argv) { return RunTest(argc, argv); }
