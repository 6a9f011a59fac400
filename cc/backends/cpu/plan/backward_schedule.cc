#include "backends/cpu/plan/backward_schedule.h"

namespace tf_lstm_ops::cpu {
namespace {

using Problem = BackwardSchedule::Problem;

// Vectors of units.
int64_t Vectors(const Problem& p) { return p.units / p.lanes; }

// The backward equations of a cell take so many times as long as the forward
// ones: they read and write more.
constexpr double kEquations = 2;
// The products of a chunk, beside the time of their multiply-adds: they also
// copy their factors.
constexpr double kChunkProducts = 1.2;
// Nanoseconds of a step, beside its rows.
constexpr double kStep = 150;

// The weights of the gates' product that gives dh, or dx, in `columns` vectors.
ProductSize TransposedProduct(const Problem& p, int64_t rows, int64_t columns) {
  return {rows, p.parts * p.units, columns, p.vector_bytes};
}

// A kernel with one vector of columns waits for its sums: six of the eight that
// hide the latency of multiply-adds.
double TimeOfColumns(const Problem& p, int64_t rows, int64_t columns,
                     double byte) {
  const double time =
      ProductTime(p.rates, TransposedProduct(p, rows, columns), byte);
  return columns == 1 ? time * 8 / kRows : time;
}

// The products of `rows` packed rows that are computed after the steps: the
// gradients of the weights, and dx.
double ChunkProductsTime(const Problem& p, int64_t rows) {
  const auto vectors = static_cast<double>(p.parts * Vectors(p));
  const double weights = static_cast<double>(rows * (p.hidden + p.input)) *
                         vectors * p.rates.multiply_add;
  const int64_t columns = CeilDiv(p.input, p.lanes);
  const double x =
      static_cast<double>(CeilDiv(columns, kColumns)) *
      TimeOfColumns(p, rows, Min(columns, kColumns), p.rates.near_byte);
  return kChunkProducts * (weights + x);
}

// Of all threads: packing, and reading what the forward pass saved, about four
// arrays of the size of h.
double StreamsTime(const Problem& p) {
  constexpr double kSaved = 4;
  const double saved =
      kSaved * static_cast<double>(p.rows * Vectors(p) * p.vector_bytes);
  return PackingTime(p.rates, p.caches, static_cast<double>(p.weight_bytes)) +
         StreamTime(p.rates, p.caches, saved);
}

}  // namespace

BackwardSchedule::BackwardSchedule(const Problem& problem, int threads)
    : batch_(problem.batch),
      steps_(problem.steps),
      step_phases_(problem.two_phases ? 2 : 1),
      slices_(SliceCount(batch_, problem.weight_bytes)),
      slice_rows_(slices_ > 0 ? CeilDiv(batch_, slices_) : batch_),
      chunk_steps_(ChunkSteps(problem.row_bytes)),
      chunks_(CeilDiv(Max(steps_, 1), chunk_steps_)),
      plan_(Choose(problem, threads)),
      group_(Group(problem, plan_.threads)) {}

BackwardSchedule::Plan BackwardSchedule::Choose(const Problem& problem,
                                                int threads) const {
  if (slices_ > 0) {
    const int64_t items = slices_ * problem.together;
    const double time = static_cast<double>(items) * SliceTime(problem) +
                        problem.together * StreamsTime(problem);
    const int t = ThreadsOfPhase(problem.rates, time, items, threads);
    return {t, time * static_cast<double>(CeilDiv(items, t)) /
                       static_cast<double>(items) +
                   PhaseTime(problem.rates, items, t) +
                   (t > 1 ? problem.rates.wake : 0)};
  }
  Plan best = {1, UnitsTime(problem, 1)};
  const int64_t vectors = problem.together * problem.units / problem.lanes;
  for (int t = 2; t <= Min(threads, vectors); ++t) {
    const double time = UnitsTime(problem, t);
    if (time < best.time) best = {t, time};
  }
  return best;
}

double BackwardSchedule::UnitsTime(const Problem& problem, int threads) const {
  const Rates& rates = problem.rates;
  const int64_t rows = CeilDiv(problem.rows, Max(steps_, 1));
  const int64_t columns = Group(problem, threads) / problem.lanes;
  const int64_t items =
      problem.together *
      CeilDiv(CeilDiv(problem.hidden, problem.lanes), columns);
  const auto per_thread = static_cast<double>(CeilDiv(items, threads));
  const double bytes = TransposedProduct(problem, rows, columns).bytes();
  const double byte =
      ReadByte(rates, problem.caches, per_thread * bytes,
               static_cast<double>(items) * bytes, step_phases_ == 1);
  const auto vectors = static_cast<double>(
      CeilDiv(problem.together * problem.units / problem.lanes, threads));
  const double product =
      problem.multiplies
          ? per_thread * TimeOfColumns(problem, rows, columns, byte)
          : 0;
  const double step =
      product +
      vectors * static_cast<double>(rows) * kEquations * rates.equations +
      static_cast<double>(step_phases_) * PhaseTime(rates, items, threads);
  const double after =
      (StreamsTime(problem) + ChunkProductsTime(problem, problem.rows)) *
      problem.together / threads;
  return static_cast<double>(steps_) * (step + kStep) + after +
         2 * static_cast<double>(chunks_) * PhaseTime(rates, items, threads) +
         (threads > 1 ? rates.wake : 0);
}

double BackwardSchedule::SliceTime(const Problem& problem) const {
  const int64_t slices = Max(slices_, 1);
  const int64_t rows = CeilDiv(problem.rows, Max(steps_, 1) * slices);
  const auto vectors = static_cast<double>(Vectors(problem));
  const auto columns = static_cast<double>(
      CeilDiv(CeilDiv(problem.hidden, problem.lanes), kColumns));
  const double step = columns * TimeOfColumns(problem, rows, kColumns,
                                              problem.rates.near_byte) +
                      vectors * static_cast<double>(rows) * kEquations *
                          problem.rates.equations;
  return static_cast<double>(steps_) * (step + kStep) +
         ChunkProductsTime(problem, CeilDiv(problem.rows, slices));
}

int64_t BackwardSchedule::Group(const Problem& problem, int threads) const {
  const int64_t vectors = problem.units / problem.lanes;
  if (slices_ > 0) return kColumns * problem.lanes;
  const int64_t share =
      Min(CeilDiv(problem.together * vectors, threads), vectors);
  if (!problem.multiplies) return problem.lanes * Max(1, share);
  const int64_t rows = CeilDiv(problem.rows, Max(steps_, 1));
  // Two items for each thread. A kernel with fewer sums than hide the latency
  // of multiply-adds takes as long with twice the columns.
  int64_t columns = problem.together * vectors / (2 * threads);
  if (Min(rows, kRows) * columns < 8) columns = share;
  return problem.lanes * Max(1, Min(columns, kColumns));
}

}  // namespace tf_lstm_ops::cpu
