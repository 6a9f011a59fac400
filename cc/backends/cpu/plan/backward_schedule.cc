#include "backends/cpu/plan/backward_schedule.h"

namespace tf_lstm_ops::cpu {
namespace {

// The backward equations of a cell take so many times as long as the forward
// ones: they read and write more.
constexpr double kEquations = 2;
// The products of a chunk, beside the time of their multiply-adds: they also
// copy their factors.
constexpr double kChunkProducts = 1.2;
// Nanoseconds of a step, beside its rows.
constexpr double kStep = 150;

// The weights of the gates' product that gives dh, or dx, in `columns` vectors.
ProductSize TransposedProduct(const BackwardProblem& p, int64_t rows,
                              int64_t columns) {
  return {rows, p.parts() * p.units(), columns, p.vector_bytes()};
}

// A kernel with one vector of columns waits for its sums: six of the eight that
// hide the latency of multiply-adds.
double TimeOfColumns(const BackwardProblem& p, int64_t rows, int64_t columns,
                     double byte) {
  const double time =
      ProductTime(p.rates, TransposedProduct(p, rows, columns), byte);
  return columns == 1 ? time * 8 / kRows : time;
}

// The products of `rows` packed rows that are computed after the steps: the
// gradients of the weights, and dx.
double ChunkProductsTime(const BackwardProblem& p, int64_t rows) {
  const auto vectors = static_cast<double>(p.parts() * p.vectors);
  const double weights =
      static_cast<double>(rows * (p.config.hidden_size + p.input())) * vectors *
      p.rates.multiply_add;
  const int64_t columns = CeilDiv(p.input(), p.traits.lanes);
  const double x =
      static_cast<double>(CeilDiv(columns, kColumns)) *
      TimeOfColumns(p, rows, Min(columns, kColumns), p.rates.near_byte);
  return kChunkProducts * (weights + x);
}

// Of all threads: packing, and reading what the forward pass saved, about four
// arrays of the size of h.
double StreamsTime(const BackwardProblem& p) {
  constexpr double kSaved = 4;
  const double saved =
      kSaved * static_cast<double>(p.rows * p.vectors * p.vector_bytes());
  return PackingTime(p.rates, p.caches, static_cast<double>(p.weight_bytes())) +
         StreamTime(p.rates, p.caches, saved);
}

}  // namespace

BackwardSchedule::BackwardSchedule(const BackwardProblem& p, int threads)
    : batch_(p.batch),
      steps_(p.steps),
      step_phases_(p.has_two_phases() ? 2 : 1),
      slices_(SliceCount(batch_, p.weight_bytes())),
      slice_rows_(slices_ > 0 ? CeilDiv(batch_, slices_) : batch_),
      chunk_steps_(ChunkSteps(p.row_bytes())),
      chunks_(CeilDiv(Max(steps_, 1), chunk_steps_)),
      choice_(Choose(p, threads)),
      group_(Group(p, choice_.threads)) {}

BackwardSchedule::Choice BackwardSchedule::Choose(const BackwardProblem& p,
                                                  int threads) const {
  if (slices_ > 0) {
    const int64_t items = slices_ * p.together;
    const double time =
        static_cast<double>(items) * SliceTime(p) + p.together * StreamsTime(p);
    const int t = ThreadsOfPhase(p.rates, time, items, threads);
    return {t, time * static_cast<double>(CeilDiv(items, t)) /
                       static_cast<double>(items) +
                   PhaseTime(p.rates, items, t) + (t > 1 ? p.rates.wake : 0)};
  }
  Choice best = {1, UnitsTime(p, 1)};
  const int64_t vectors = p.together * p.vectors;
  for (int t = 2; t <= Min(threads, vectors); ++t) {
    const double time = UnitsTime(p, t);
    if (time < best.time) best = {t, time};
  }
  return best;
}

double BackwardSchedule::UnitsTime(const BackwardProblem& p,
                                   int threads) const {
  const Rates& rates = p.rates;
  const int64_t rows = p.mean_rows();
  const int64_t columns = Group(p, threads) / p.traits.lanes;
  const int64_t items =
      p.together *
      CeilDiv(CeilDiv(p.config.hidden_size, p.traits.lanes), columns);
  const auto per_thread = static_cast<double>(CeilDiv(items, threads));
  const double bytes = TransposedProduct(p, rows, columns).bytes();
  const double byte =
      ReadByte(rates, p.caches, per_thread * bytes,
               static_cast<double>(items) * bytes, step_phases_ == 1);
  const auto vectors =
      static_cast<double>(CeilDiv(p.together * p.vectors, threads));
  const double product =
      p.multiplies() ? per_thread * TimeOfColumns(p, rows, columns, byte) : 0;
  const double step =
      product +
      vectors * static_cast<double>(rows) * kEquations * rates.equations +
      static_cast<double>(step_phases_) * PhaseTime(rates, items, threads);
  const double after =
      (StreamsTime(p) + ChunkProductsTime(p, p.rows)) * p.together / threads;
  return static_cast<double>(steps_) * (step + kStep) + after +
         2 * static_cast<double>(chunks_) * PhaseTime(rates, items, threads) +
         (threads > 1 ? rates.wake : 0);
}

double BackwardSchedule::SliceTime(const BackwardProblem& p) const {
  const int64_t slices = Max(slices_, 1);
  const int64_t rows = CeilDiv(p.rows, Max(steps_, 1) * slices);
  const auto vectors = static_cast<double>(p.vectors);
  const auto columns = static_cast<double>(
      CeilDiv(CeilDiv(p.config.hidden_size, p.traits.lanes), kColumns));
  const double step =
      columns * TimeOfColumns(p, rows, kColumns, p.rates.near_byte) +
      vectors * static_cast<double>(rows) * kEquations * p.rates.equations;
  return static_cast<double>(steps_) * (step + kStep) +
         ChunkProductsTime(p, CeilDiv(p.rows, slices));
}

int64_t BackwardSchedule::Group(const BackwardProblem& p, int threads) const {
  const int64_t vectors = p.vectors;
  if (slices_ > 0) return kColumns * p.traits.lanes;
  const int64_t share = Min(CeilDiv(p.together * vectors, threads), vectors);
  if (!p.multiplies()) return p.traits.lanes * Max(1, share);
  const int64_t rows = p.mean_rows();
  // Two items for each thread. A kernel with fewer sums than hide the latency
  // of multiply-adds takes as long with twice the columns.
  int64_t columns = p.together * vectors / (2 * threads);
  if (Min(rows, kRows) * columns < 8) columns = share;
  return p.traits.lanes * Max(1, Min(columns, kColumns));
}

}  // namespace tf_lstm_ops::cpu
