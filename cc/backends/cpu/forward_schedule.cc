#include "backends/cpu/forward_schedule.h"

#include <numeric>

namespace tf_lstm_ops::cpu {
namespace {

// The constants were compared with others by `python3 benchmarks/engine` and
// the cases that are named here; benchmarks/NOTES.md, "Engine: one step in one
// file", has the figures. Where others were equal within 5 %, the reason is the
// choice.

// Vectors of units of an item that reads the weights in place: 512 bytes of
// each row of the weights with AVX-512, so that a page is read by few items.
// Not measured alone.
constexpr int64_t kOnceVectors = 8;

// Vectors of units that are packed together: 512 bytes of each row of a gate's
// weights with AVX-512, since a row of a large layer is on another page. One
// vector took 1.4 times as long: lstm,4,25,1024,1024.
constexpr int64_t kPackingVectors = 8;

// Multiply-adds of an item, one microsecond or more of work. The thread team
// hands out an item by an atomic operation: lstm,1,100,128,128.
constexpr int64_t kItemMultiplyAdds = 100000;

// At the end of each step, threads wait for the slowest one.
constexpr double kWaiting = 1.05;

// Bytes of z of a chunk. A thread's part stays in half of its L2 cache until it
// is read. lstm,4,50,256,256.
int64_t ChunkBytes(const Caches& caches, int threads) {
  return Min(caches.l2 / 2 * threads, Max(caches.shared / 2, caches.l2));
}

int64_t ChunkRows(int64_t batch, const Caches& caches, int64_t z_bytes,
                  int threads) {
  return Max(Max(batch, ForwardSchedule::kBandRows),
             ChunkBytes(caches, threads) / z_bytes);
}

// The least number of slices of a layer direction that gives all threads as
// many of the slices of `together` directions.
int64_t SliceCount(int64_t batch, int threads, int together) {
  const int64_t multiple = threads / std::gcd(threads, together);
  return CeilDiv(CeilDiv(batch, ForwardSchedule::kBandRows), multiple) *
         multiple;
}

int64_t StepPhases(const ForwardSchedule::Problem& problem) {
  return problem.multiplies_m || problem.reduces_rows ? 2 : 1;
}

// The weights of one vector of units.
ProductSize InputProduct(const ForwardSchedule::Problem& p, int64_t rows) {
  return {rows, p.input, p.input_parts, p.vector_bytes};
}
ProductSize RecurrentProduct(const ForwardSchedule::Problem& p, int64_t rows) {
  return {rows, p.hidden, p.recurrent_parts, p.vector_bytes};
}
ProductSize SecondProduct(const ForwardSchedule::Problem& p, int64_t rows) {
  return {rows, p.multiplies_m ? p.units : 0, 1, p.vector_bytes};
}
double Bytes(const ProductSize& p) {
  return static_cast<double>(p.depth * p.columns * p.vector_bytes);
}

// Of a thread that packs its part.
double PackingTime(const ForwardSchedule::Problem& p, int threads) {
  if (!p.packs_weights) return 0;
  const int64_t vectors = p.together * p.units / p.lanes;
  const double bytes =
      static_cast<double>(vectors) *
      (Bytes(InputProduct(p, 0)) + Bytes(RecurrentProduct(p, 0)) +
       Bytes(SecondProduct(p, 0)));
  return PackingTime(p.rates, p.caches, bytes) / threads;
}

}  // namespace

ForwardSchedule::ForwardSchedule(const Problem& problem, int threads)
    : rows_(problem.rows),
      plan_(Choose(problem, threads)),
      prefetches_weights_(PrefetchesWeights(problem, plan_)),
      step_phases_(StepPhases(problem)),
      second_work_(problem.multiplies_m ? Work::kProject : Work::kRows),
      units_(problem.units),
      hidden_(problem.hidden),
      slices_(regime() == Regime::kSlices
                  ? SliceCount(rows_.batch, plan_.threads, problem.together)
                  : 0),
      slice_rows_(slices_ > 0 ? CeilDiv(rows_.batch, slices_) : 0),
      chunk_rows_(ChunkRows(rows_.batch, problem.caches, problem.z_bytes,
                            plan_.threads)),
      group_(Group(problem, regime(), plan_.threads)),
      packing_group_(Max(
          group_,
          problem.lanes * Min(kPackingVectors,
                              CeilDiv(units_ / problem.lanes, plan_.threads)))),
      caches_(problem.caches),
      z_bytes_(problem.z_bytes) {}

ForwardSchedule::Plan ForwardSchedule::Choose(const Problem& problem,
                                              int threads) {
  const int64_t vectors = problem.together * problem.units / problem.lanes;
  const Rates& rates = problem.rates;
  if (problem.once) {
    const int64_t rows = problem.rows.size();
    const double bytes =
        static_cast<double>(vectors) *
        (Bytes(InputProduct(problem, 0)) + Bytes(RecurrentProduct(problem, 0)));
    const double byte = ReadByte(rates, problem.caches, bytes, bytes, false);
    const double time =
        static_cast<double>(vectors) *
        (ProductTime(rates, InputProduct(problem, rows), byte) +
         ProductTime(rates, RecurrentProduct(problem, rows), byte));
    return {Regime::kOnce, ThreadsOfPhase(rates, time, vectors, threads), time};
  }
  Plan best = {Regime::kUnits, 1, UnitsTime(problem, 1)};
  const auto consider = [&](Regime regime, int t, double time) {
    if (time < best.time) best = {regime, t, time};
  };
  const auto most = [&](int64_t items) {
    return static_cast<int>(Max(1, Min(threads, items)));
  };
  for (int t = 2; t <= most(vectors); ++t) {
    consider(Regime::kUnits, t, UnitsTime(problem, t));
  }
  const int64_t slices =
      problem.together * (problem.rows.batch / kMinSliceRows);
  for (int t = 1; t <= most(slices) && slices > 0; ++t) {
    const int64_t count = SliceCount(problem.rows.batch, t, problem.together);
    if (count * kMinSliceRows > problem.rows.batch) continue;
    consider(Regime::kSlices, t, SlicesTime(problem, t));
  }
  return best;
}

bool ForwardSchedule::PrefetchesWeights(const Problem& problem,
                                        const Plan& plan) {
  const int64_t vectors = problem.together * problem.units / problem.lanes;
  const bool slices = plan.regime == Regime::kSlices;
  const double bytes =
      static_cast<double>(slices ? vectors : CeilDiv(vectors, plan.threads)) *
      (Bytes(RecurrentProduct(problem, 0)) +
       (slices ? Bytes(InputProduct(problem, 0)) : 0));
  return bytes > static_cast<double>(problem.caches.l2) &&
         HasSlowSharedCache(problem.rates, problem.vector_bytes);
}

double ForwardSchedule::UnitsTime(const Problem& problem, int threads) {
  Rates rates = problem.rates;
  if (problem.one_row && threads == 1) rates.tile = rates.item = 0;
  const auto steps = static_cast<double>(Max(problem.rows.steps, 1));
  const int64_t rows = CeilDiv(problem.rows.size(), Max(problem.rows.steps, 1));
  const int64_t vectors = problem.together * problem.units / problem.lanes;
  const auto per_thread = static_cast<double>(CeilDiv(vectors, threads));
  const int64_t chunk = Min(
      ChunkRows(problem.rows.batch, problem.caches, problem.z_bytes, threads),
      problem.rows.size());
  const ProductSize input = InputProduct(problem, chunk);
  const ProductSize recurrent = RecurrentProduct(problem, rows);
  const ProductSize second = SecondProduct(problem, rows);
  const double kept = Bytes(recurrent) + Bytes(second);
  const double all = kept + Bytes(input);
  const auto count = static_cast<double>(vectors);
  const double byte = ReadByte(rates, problem.caches, per_thread * kept,
                               count * kept, StepPhases(problem) == 1);
  const double input_byte =
      ReadByte(rates, problem.caches, per_thread * all, count * all, false);
  const double chunks = static_cast<double>(problem.rows.size()) /
                        static_cast<double>(Max(chunk, 1));
  // z is written, after the cache has read its lines, and read.
  const double z =
      3 *
      static_cast<double>(rows * problem.input_parts * problem.vector_bytes) *
      rates.near_byte;
  const double step = ProductTime(rates, recurrent, byte) +
                      ProductTime(rates, second, byte) + z +
                      static_cast<double>(rows) * rates.equations;
  const int64_t items = CeilDiv(problem.together * problem.units,
                                Group(problem, Regime::kUnits, threads));
  const double phases = steps * static_cast<double>(StepPhases(problem));
  return PackingTime(problem, threads) +
         per_thread * (threads > 1 ? kWaiting : 1) *
             (chunks * ProductTime(rates, input, input_byte) + steps * step) +
         phases * PhaseTime(rates, items, threads) +
         (threads > 1 ? rates.wake : 0);
}

double ForwardSchedule::SlicesTime(const Problem& problem, int threads) {
  const Rates& rates = problem.rates;
  const auto steps = static_cast<double>(Max(problem.rows.steps, 1));
  const int64_t vectors = problem.units / problem.lanes;
  const int64_t slices =
      SliceCount(problem.rows.batch, threads, problem.together);
  const int64_t rows =
      CeilDiv(problem.rows.size(), Max(problem.rows.steps, 1) * slices);
  const ProductSize input = InputProduct(problem, rows);
  const ProductSize recurrent = RecurrentProduct(problem, rows);
  const ProductSize second = SecondProduct(problem, rows);
  const double bytes = static_cast<double>(vectors) *
                       (Bytes(input) + Bytes(recurrent) + Bytes(second));
  const double byte = ReadByte(rates, problem.caches, bytes, bytes, false);
  const double step = ProductTime(rates, input, byte) +
                      ProductTime(rates, recurrent, byte) +
                      ProductTime(rates, second, byte) +
                      static_cast<double>(rows) * rates.equations;
  const auto rounds =
      static_cast<double>(CeilDiv(problem.together * slices, threads));
  return PackingTime(problem, threads) +
         rounds * steps * static_cast<double>(vectors) * step +
         PhaseTime(rates, slices, threads) + (threads > 1 ? rates.wake : 0);
}

int64_t ForwardSchedule::Phases() const {
  return regime() == Regime::kSlices ? 2 : rows_.steps * step_phases_ + 1;
}

ForwardSchedule::Phase ForwardSchedule::At(int64_t phase) const {
  if (phase == 0) return {Work::kPrepare};
  if (regime() == Regime::kSlices) return {Work::kSlices};
  const bool cells = step_phases_ == 1 || phase % 2 == 1;
  return {cells ? Work::kCells : second_work_, (phase - 1) / step_phases_};
}

int64_t ForwardSchedule::Items(int64_t phase) const {
  const Phase at = At(phase);
  if (at.work == Work::kSlices) return slices_;
  if (at.work == Work::kPrepare) return CeilDiv(units_, packing_group_);
  const int64_t rows = rows_.Begin(at.step + 1) - rows_.Begin(at.step);
  if (rows == 0) return 0;
  if (at.work == Work::kRows) return rows;
  return CeilDiv(at.work == Work::kProject ? hidden_ : units_, group_);
}

int64_t ForwardSchedule::SliceBegin(int64_t slice, int64_t step) const {
  return rows_.Find(step, Min(slice * slice_rows_, rows_.batch));
}

int64_t ForwardSchedule::MaxChunkRows() const {
  if (regime() == Regime::kSlices) return 0;
  return Min(rows_.size(), chunk_rows_ + rows_.batch);
}

int64_t ForwardSchedule::MostChunkRows(int threads) const {
  const int64_t rows = ChunkRows(rows_.batch, caches_, z_bytes_, threads);
  return Min(rows_.size(), rows + rows_.batch);
}

int64_t ForwardSchedule::InChunk(int64_t step) const {
  return rows_.Begin(step) - ChunkOf(step) * chunk_rows_;
}

bool ForwardSchedule::BeginsChunk(int64_t step) const {
  int64_t before = step;  // the last step before this one with valid rows
  while (before > 0 && rows_.Begin(before) == rows_.Begin(step)) --before;
  return rows_.Begin(step) == 0 || ChunkOf(before) != ChunkOf(step);
}

int64_t ForwardSchedule::ChunkEnd(int64_t step) const {
  const int64_t chunk = ChunkOf(step);
  while (step < rows_.steps && ChunkOf(step) == chunk) ++step;
  return rows_.Begin(step);
}

int64_t ForwardSchedule::Group(const Problem& problem, Regime regime,
                               int threads) {
  const int64_t lanes = problem.lanes;
  const int64_t per_thread = Max(CeilDiv(problem.units / lanes, threads), 1);
  if (regime == Regime::kOnce) return Min(kOnceVectors, per_thread) * lanes;
  const int64_t rows = Max(problem.rows.size() / Max(problem.rows.steps, 1), 1);
  const int64_t work =
      rows * problem.recurrent_parts * lanes * Max(problem.hidden, 1);
  const int64_t items = Max(per_thread * work / kItemMultiplyAdds, 1);
  return CeilDiv(per_thread, items) * lanes;
}

}  // namespace tf_lstm_ops::cpu
