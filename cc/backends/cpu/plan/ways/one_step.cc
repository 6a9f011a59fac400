// ForwardWay::kOneStep: a call with one step uses the weights once, so it reads
// them where they lie, if all pre-activations are sums of both products.
#include "backends/cpu/plan/ways.h"

namespace tf_lstm_ops::cpu {
namespace {

// Vectors of units of an item: 512 bytes of each row of the weights with
// AVX-512, so that a page is read by few items. Not measured alone.
constexpr int64_t kOnceVectors = 8;

// The most rows. With 32 rows packed weights took 1.09 to 1.67 times as long;
// from 64 rows on 0.84 to 1.30. benchmarks/NOTES.md, "One step of many rows".
constexpr int64_t kMostRowsInPlace = 8 * kRows;

double ProductsTime(const ForwardProblem& p) {
  const ProductSize input = p.InputProduct(p.rows),
                    recurrent = p.RecurrentProduct(p.rows);
  const auto vectors = static_cast<double>(p.all_vectors());
  const double bytes = vectors * (input.bytes() + recurrent.bytes());
  const double byte = ReadByte(p.rates, p.caches, bytes, bytes, false);
  return vectors * (ProductTime(p.rates, input, byte) +
                    ProductTime(p.rates, recurrent, byte));
}

bool FitsOneStep(const ForwardProblem& p) {
  const bool rounds_factors =
      p.traits.dots_pairs && p.format == WeightFormat::kBFloat16Pairs;
  return p.shape.all_see_both() && !p.multiplies_m() && p.has_input &&
         p.units_in_rows && !rounds_factors;
}

bool IsOneStep(const ForwardProblem& p) {
  return p.weights == WeightsState::kOfCall && p.steps == 1 && p.rows > 0 &&
         p.rows <= kMostRowsInPlace && !p.drops;
}

bool TakeOneStep(const ForwardProblem& problem, int threads,
                 ForwardPlan* plan) {
  if (!IsOneStep(problem)) return false;
  plan->threads = ThreadsOfPhase(problem.rates, ProductsTime(problem),
                                 problem.all_vectors(), threads);
  plan->group = problem.traits.lanes *
                Min(kOnceVectors, CeilDiv(problem.vectors, plan->threads));
  return true;
}

}  // namespace

const Way kOneStepWay = {&FitsOneStep, &TakeOneStep};

bool ReadsInPlace(const ForwardProblem& problem) {
  return FitsOneStep(problem) && IsOneStep(problem);
}

}  // namespace tf_lstm_ops::cpu
