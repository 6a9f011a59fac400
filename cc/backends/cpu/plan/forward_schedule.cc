#include "backends/cpu/plan/forward_schedule.h"

#include <numeric>

#include "backends/cpu/team/thread_team.h"

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

// Rows of a slice. A tile of one row would read the weights for one product.
constexpr int64_t kLeastSliceRows = 2;

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

// Of the weights of a vector of units that each step reads.
double RecurrentBytes(const ForwardProblem& p) {
  return p.RecurrentProduct(0).bytes() + p.SecondProduct(0).bytes();
}
double AllBytes(const ForwardProblem& p) {
  return p.InputProduct(0).bytes() + RecurrentBytes(p);
}

// Of a thread that packs its part.
double PackingTime(const ForwardProblem& p, int threads) {
  if (p.weights == WeightsState::kFilled) return 0;
  const double bytes = static_cast<double>(p.all_vectors()) * AllBytes(p);
  return PackingTime(p.rates, p.caches, bytes) / threads;
}

// Of `rows` rows of a step and a vector of units, without x W.
double RecurrentTime(const Rates& rates, const ForwardProblem& p, int64_t rows,
                     double read_byte) {
  return ProductTime(rates, p.RecurrentProduct(rows), read_byte) +
         ProductTime(rates, p.SecondProduct(rows), read_byte) +
         static_cast<double>(rows) * rates.equations;
}

// Each thread gets several items, but an item has enough work to make
// scheduling it cheap.
int64_t ItemUnits(const ForwardProblem& p, int threads) {
  const int64_t per_thread = Max(CeilDiv(p.vectors, threads), 1);
  const int64_t rows = Max(p.rows / Max(p.steps, 1), 1);
  const int64_t work =
      rows * p.shape.recurrent * p.traits.lanes * Max(p.config.hidden_size, 1);
  const auto least =
      static_cast<int64_t>(kItemMultiplyAdds * QuadsSpeed(p.format));
  const int64_t items = Max(per_thread * work / least, 1);
  return CeilDiv(per_thread, items) * p.traits.lanes;
}

bool PrefetchesWeights(const ForwardProblem& p, bool slices, int threads) {
  const double vector =
      p.RecurrentProduct(0).bytes() + (slices ? p.InputProduct(0).bytes() : 0);
  const int64_t vectors =
      slices ? p.all_vectors() : CeilDiv(p.all_vectors(), threads);
  return static_cast<double>(vectors) * vector >
             static_cast<double>(p.caches.l2) &&
         HasSlowSharedCache(p.rates, p.vector_bytes());
}

double UnitsTime(const ForwardProblem& p, int threads, bool is_row) {
  Rates rates = p.rates;
  if (is_row && threads == 1) rates.tile = rates.item = 0;
  const auto steps = static_cast<double>(Max(p.steps, 1));
  const int64_t rows = CeilDiv(p.rows, Max(p.steps, 1));
  const auto vectors = static_cast<double>(p.all_vectors());
  const auto per_thread =
      static_cast<double>(CeilDiv(p.all_vectors(), threads));
  const auto read_byte = [&](double bytes, bool serpentine) {
    return ReadByte(rates, p.caches, per_thread * bytes, vectors * bytes,
                    serpentine);
  };
  const int64_t chunk =
      Min(ChunkRows(p.batch, p.caches, p.z_bytes(), threads), p.rows);
  const double chunks =
      static_cast<double>(p.rows) / static_cast<double>(Max(chunk, 1));
  const double input =
      ProductTime(rates, p.InputProduct(chunk), read_byte(AllBytes(p), false));
  // z is written, after the cache has read its lines, and read.
  const double z = 3 *
                   static_cast<double>(rows * p.shape.input * p.traits.lanes *
                                       p.traits.element_bytes) *
                   rates.near_byte;
  const double step =
      z + RecurrentTime(rates, p, rows,
                        read_byte(RecurrentBytes(p), StepPhases(p) == 1));
  // Of h that other threads wrote.
  const double shared =
      static_cast<double>(rows * p.config.hidden_size * p.together *
                          p.traits.element_bytes) *
      (threads - 1) / threads * rates.exchanged_byte;
  const int64_t items = CeilDiv(p.together * p.units(), ItemUnits(p, threads));
  const double phases = steps * static_cast<double>(StepPhases(p));
  return PackingTime(p, threads) +
         per_thread * (threads > 1 ? kWaiting : 1) *
             (chunks * input + steps * step) +
         steps * shared + phases * PhaseTime(rates, items, threads) +
         (threads > 1 ? rates.wake : 0);
}

double SlicesTime(const ForwardProblem& p, int threads) {
  const Rates& rates = p.rates;
  const int64_t slices = SliceCount(p.batch, threads, p.together);
  const int64_t rows = CeilDiv(p.rows, Max(p.steps, 1) * slices);
  const auto vectors = static_cast<double>(p.vectors);
  const double bytes = vectors * AllBytes(p);
  const double byte = ReadByte(rates, p.caches, bytes, bytes, false);
  const double step = ProductTime(rates, p.InputProduct(rows), byte) +
                      RecurrentTime(rates, p, rows, byte);
  const auto rounds =
      static_cast<double>(CeilDiv(p.together * slices, threads));
  return PackingTime(p, threads) +
         rounds * static_cast<double>(Max(p.steps, 1)) * vectors * step +
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
    return static_cast<int>(Max(1, Min(Min(threads, items), kMaxThreads)));
  };
  for (int t = 2; t <= most(problem.all_vectors()); ++t) {
    consider(Regime::kUnits, t, UnitsTime(problem, t, is_row));
  }
  const int64_t slices = problem.together * (problem.batch / kLeastSliceRows);
  for (int t = 1; t <= most(slices) && slices > 0; ++t) {
    const int64_t count = SliceCount(problem.batch, t, problem.together);
    if (count * kLeastSliceRows > problem.batch) continue;
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
