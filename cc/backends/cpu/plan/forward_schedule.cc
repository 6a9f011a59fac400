#include "backends/cpu/plan/forward_schedule.h"

#include <numeric>

namespace tf_lstm_ops::cpu {
namespace {

// The constants were compared with others by `python3 benchmarks/engine` and
// the cases that are named here; benchmarks/NOTES.md, "Engine: one step in one
// file", has the figures. Where others were equal within 5 %, the reason is the
// choice.

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

int64_t StepPhases(const ForwardProblem& problem) {
  return problem.multiplies_m() || problem.shape.reduces_rows ? 2 : 1;
}

// Vectors of units of all directions that run side by side.
int64_t AllVectors(const ForwardProblem& p) { return p.together * p.vectors; }

// The weights of one vector of units.
ProductSize InputProduct(const ForwardProblem& p, int64_t rows) {
  return {rows, p.input(), p.shape.input, p.vector_bytes()};
}
ProductSize RecurrentProduct(const ForwardProblem& p, int64_t rows) {
  return {rows, p.config.hidden_size, p.shape.recurrent, p.vector_bytes()};
}
ProductSize SecondProduct(const ForwardProblem& p, int64_t rows) {
  return {rows, p.multiplies_m() ? p.units() : 0, 1, p.vector_bytes()};
}
double Bytes(const ProductSize& p) {
  return static_cast<double>(p.depth * p.columns * p.vector_bytes);
}

// Of a thread that packs its part.
double PackingTime(const ForwardProblem& p, int threads) {
  if (p.weights == WeightsState::kFilled) return 0;
  const double bytes =
      static_cast<double>(AllVectors(p)) *
      (Bytes(InputProduct(p, 0)) + Bytes(RecurrentProduct(p, 0)) +
       Bytes(SecondProduct(p, 0)));
  return PackingTime(p.rates, p.caches, bytes) / threads;
}

// Each thread gets several items, but an item has enough work to make
// scheduling it cheap.
int64_t ItemUnits(const ForwardProblem& p, int threads) {
  const int64_t per_thread = Max(CeilDiv(p.vectors, threads), 1);
  const int64_t rows = Max(p.rows / Max(p.steps, 1), 1);
  const int64_t work =
      rows * p.shape.recurrent * p.traits.lanes * Max(p.config.hidden_size, 1);
  const int64_t items = Max(per_thread * work / kItemMultiplyAdds, 1);
  return CeilDiv(per_thread, items) * p.traits.lanes;
}

bool PrefetchesWeights(const ForwardProblem& p, bool slices, int threads) {
  const double bytes =
      static_cast<double>(slices ? AllVectors(p)
                                 : CeilDiv(AllVectors(p), threads)) *
      (Bytes(RecurrentProduct(p, 0)) +
       (slices ? Bytes(InputProduct(p, 0)) : 0));
  return bytes > static_cast<double>(p.caches.l2) &&
         HasSlowSharedCache(p.rates, p.vector_bytes());
}

double UnitsTime(const ForwardProblem& problem, int threads, bool is_row) {
  Rates rates = problem.rates;
  if (is_row && threads == 1) rates.tile = rates.item = 0;
  const auto steps = static_cast<double>(Max(problem.steps, 1));
  const int64_t rows = CeilDiv(problem.rows, Max(problem.steps, 1));
  const int64_t vectors = AllVectors(problem);
  const auto per_thread = static_cast<double>(CeilDiv(vectors, threads));
  const int64_t chunk =
      Min(ChunkRows(problem.batch, problem.caches, problem.z_bytes(), threads),
          problem.rows);
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
  const double chunks =
      static_cast<double>(problem.rows) / static_cast<double>(Max(chunk, 1));
  // z is written, after the cache has read its lines, and read.
  const double z =
      3 *
      static_cast<double>(rows * problem.shape.input * problem.vector_bytes()) *
      rates.near_byte;
  const double step = ProductTime(rates, recurrent, byte) +
                      ProductTime(rates, second, byte) + z +
                      static_cast<double>(rows) * rates.equations;
  const int64_t items =
      CeilDiv(problem.together * problem.units(), ItemUnits(problem, threads));
  const double phases = steps * static_cast<double>(StepPhases(problem));
  return PackingTime(problem, threads) +
         per_thread * (threads > 1 ? kWaiting : 1) *
             (chunks * ProductTime(rates, input, input_byte) + steps * step) +
         phases * PhaseTime(rates, items, threads) +
         (threads > 1 ? rates.wake : 0);
}

double SlicesTime(const ForwardProblem& problem, int threads) {
  const Rates& rates = problem.rates;
  const auto steps = static_cast<double>(Max(problem.steps, 1));
  const int64_t vectors = problem.vectors;
  const int64_t slices = SliceCount(problem.batch, threads, problem.together);
  const int64_t rows = CeilDiv(problem.rows, Max(problem.steps, 1) * slices);
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

}  // namespace

ForwardSchedule::ForwardSchedule(const ForwardProblem& problem, int threads,
                                 bool is_row)
    : second_work_(problem.multiplies_m() ? Work::kProject : Work::kRows),
      step_phases_(StepPhases(problem)),
      units_(problem.units()),
      hidden_(problem.config.hidden_size) {
  Choose(problem, threads, is_row);
  prefetches_weights_ =
      PrefetchesWeights(problem, regime_ == Regime::kSlices, threads_);
  if (regime_ == Regime::kSlices) {
    slices_ = SliceCount(problem.batch, threads_, problem.together);
    slice_rows_ = CeilDiv(problem.batch, slices_);
  }
  chunk_rows_ =
      ChunkRows(problem.batch, problem.caches, problem.z_bytes(), threads_);
  group_ = ItemUnits(problem, threads_);
  const int64_t vectors = CeilDiv(problem.vectors, threads_);
  packing_group_ =
      Max(group_, problem.traits.lanes * Min(kPackingVectors, vectors));
}

void ForwardSchedule::Choose(const ForwardProblem& problem, int threads,
                             bool is_row) {
  time_ = UnitsTime(problem, 1, is_row);
  const auto consider = [&](Regime regime, int t, double time) {
    if (time < time_) regime_ = regime, threads_ = t, time_ = time;
  };
  const auto most = [&](int64_t items) {
    return static_cast<int>(Max(1, Min(threads, items)));
  };
  for (int t = 2; t <= most(AllVectors(problem)); ++t) {
    consider(Regime::kUnits, t, UnitsTime(problem, t, is_row));
  }
  const int64_t slices = problem.together * (problem.batch / kMinSliceRows);
  for (int t = 1; t <= most(slices) && slices > 0; ++t) {
    const int64_t count = SliceCount(problem.batch, t, problem.together);
    if (count * kMinSliceRows > problem.batch) continue;
    consider(Regime::kSlices, t, SlicesTime(problem, t));
  }
}

int64_t ForwardSchedule::Phases(const PackedSequence& rows) const {
  return regime() == Regime::kSlices ? 2 : rows.steps * step_phases_ + 1;
}

ForwardSchedule::Phase ForwardSchedule::At(int64_t phase) const {
  if (phase == 0) return {Work::kPrepare};
  if (regime() == Regime::kSlices) return {Work::kSlices};
  const bool cells = step_phases_ == 1 || phase % 2 == 1;
  return {cells ? Work::kCells : second_work_, (phase - 1) / step_phases_};
}

int64_t ForwardSchedule::Items(const PackedSequence& rows,
                               int64_t phase) const {
  const Phase at = At(phase);
  if (at.work == Work::kSlices) return slices_;
  if (at.work == Work::kPrepare) return CeilDiv(units_, packing_group_);
  const int64_t count = rows.Begin(at.step + 1) - rows.Begin(at.step);
  if (count == 0) return 0;
  if (at.work == Work::kRows) return count;
  return CeilDiv(at.work == Work::kProject ? hidden_ : units_, group_);
}

int64_t ForwardSchedule::SliceBegin(const PackedSequence& rows, int64_t slice,
                                    int64_t step) const {
  return rows.Find(step, Min(slice * slice_rows_, rows.batch));
}

int64_t ForwardSchedule::MaxChunkRows(const PackedSequence& rows) const {
  if (regime() == Regime::kSlices) return 0;
  return Min(rows.size(), chunk_rows_ + rows.batch);
}

int64_t MostChunkRows(const ForwardProblem& problem, int threads) {
  const int64_t rows =
      ChunkRows(problem.batch, problem.caches, problem.z_bytes(), threads);
  return Min(problem.rows, rows + problem.batch);
}

int64_t ForwardSchedule::InChunk(const PackedSequence& rows,
                                 int64_t step) const {
  return rows.Begin(step) - ChunkOf(rows, step) * chunk_rows_;
}

bool ForwardSchedule::BeginsChunk(const PackedSequence& rows,
                                  int64_t step) const {
  int64_t before = step;  // the last step before this one with valid rows
  while (before > 0 && rows.Begin(before) == rows.Begin(step)) --before;
  return rows.Begin(step) == 0 || ChunkOf(rows, before) != ChunkOf(rows, step);
}

int64_t ForwardSchedule::ChunkEnd(const PackedSequence& rows,
                                  int64_t step) const {
  const int64_t chunk = ChunkOf(rows, step);
  while (step < rows.steps && ChunkOf(rows, step) == chunk) ++step;
  return rows.Begin(step);
}

}  // namespace tf_lstm_ops::cpu
