// The predicted time of a pass. The schedules choose by it how to divide the
// work, and among how many threads. docs/design/threads.md compares predictions
// with measurements.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_COST_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_COST_H_

#include "backends/cpu/processor/caches.h"
#include "backends/cpu/sizes.h"

namespace tf_lstm_ops::cpu {

// What a prediction assumes of a processor, in nanoseconds. The defaults are
// those of an AMD Zen 5 with AVX-512. A choice depends on their ratios, which
// differ less between processors than the values. `python3 benchmarks/engine
// --predict` measures six of them.
struct Rates {
  double multiply_add = 0.125;    // of vectors
  double tile = 20;               // beginning a product of a tile
  double equations = 7;           // the cell's equations of a vector of units
  double near_byte = 0.005;       // of weights, read from the core's L2 cache
  double far_byte = 0.004;        // what it takes longer from the shared cache
  double memory_byte = 0.025;     // what it takes longer from memory
  double packed_byte = 0.02;      // of weights that are packed
  double exchanged_byte = 0.075;  // of h, read from another core's caches
  double item = 10;               // handing out an item
  double thread = 55;             // ending a phase, for each thread
  double wake = 4000;             // waking the threads for a call
};

// Whether the shared cache delivers a vector of weights slower than a tile of
// kRows rows uses it. Products then prefetch the weights that they read from
// there.
inline bool HasSlowSharedCache(const Rates& rates, int64_t vector_bytes) {
  return (rates.near_byte + rates.far_byte) *
             static_cast<double>(vector_bytes) >
         kRows * rates.multiply_add;
}

// A product of some rows with weights that are read `columns` vectors at a
// time, `depth` rows of them.
struct ProductSize {
  int64_t rows, depth, columns;
  int64_t vector_bytes;

  // Of the weights.
  double bytes() const {
    return static_cast<double>(depth * columns * vector_bytes);
  }
};

// The part of the shared cache that a call is assumed to have: other processes
// and other virtual machines use it too.
inline double SharedPart(const Caches& caches) {
  return static_cast<double>(caches.shared) / 3;
}

// The time of a byte of weights that a step reads: of `bytes` bytes that a
// thread reads in each step, and `all` bytes that all threads read. With
// `serpentine` order a cache keeps as much for the next step as it holds,
// otherwise nothing if all do not fit. A third of an L2 cache is left to
// other data.
inline double ReadByte(const Rates& rates, const Caches& caches, double bytes,
                       double all, bool serpentine) {
  const auto beyond = [&](double size, double kept) {
    return size <= kept ? 0 : serpentine ? 1 - kept / size : 1;
  };
  return rates.near_byte +
         beyond(bytes, 2.0 / 3 * static_cast<double>(caches.l2)) *
             rates.far_byte +
         beyond(all, SharedPart(caches)) * rates.memory_byte;
}

// The time of a product with one set of columns. Tiles of kRows rows read the
// weights one after the other: the first tile in `read_byte` nanoseconds a
// byte, the others from the L2 cache. A tile computes while it reads.
inline double ProductTime(const Rates& rates, const ProductSize& p,
                          double read_byte) {
  if (p.depth == 0) return 0;
  const double bytes = p.bytes();
  const double row =
      static_cast<double>(p.depth * p.columns) * rates.multiply_add;
  const auto tile = [&](int64_t rows, double byte) {
    const double compute = static_cast<double>(rows) * row;
    return rates.tile + (compute > bytes * byte ? compute : bytes * byte);
  };
  const int64_t first = Min(p.rows, kRows), rest = p.rows - first;
  const int64_t whole = rest / kRows;
  double time = tile(first, read_byte);
  time += static_cast<double>(whole) * tile(kRows, rates.near_byte);
  if (rest % kRows > 0) time += tile(rest % kRows, rates.near_byte);
  return time;
}

// The time to read or write data of a call that are used once.
inline double StreamTime(const Rates& rates, const Caches& caches,
                         double bytes) {
  return bytes * ReadByte(rates, caches, bytes, bytes, false);
}

// The time to pack weights: they are read and written.
inline double PackingTime(const Rates& rates, const Caches& caches,
                          double bytes) {
  return bytes * rates.packed_byte + 2 * StreamTime(rates, caches, bytes);
}

// What a phase takes beside its items, which the threads share.
inline double PhaseTime(const Rates& rates, int64_t items, int threads) {
  const double handing =
      rates.item * static_cast<double>(CeilDiv(items, threads));
  return handing + (threads > 1 ? rates.thread * threads : 0);
}

// The number of threads, at most `threads`, for one phase of `items` equal
// items that take `time` nanoseconds together.
inline int ThreadsOfPhase(const Rates& rates, double time, int64_t items,
                          int threads) {
  int best = 1;
  double least = time;
  for (int t = 2; t <= Min(threads, items); ++t) {
    const double part =
        static_cast<double>(CeilDiv(items, t)) / static_cast<double>(items);
    const double with = time * part + PhaseTime(rates, items, t) + rates.wake;
    if (with < least) least = with, best = t;
  }
  return best;
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_COST_H_
