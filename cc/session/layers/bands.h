// Divides the rows of a layer into bands, for the threads.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_BANDS_H_
#define TF_LSTM_OPS_SESSION_LAYERS_BANDS_H_

#include <cstdint>

#include "backends/cpu/plan/cost.h"
#include "backends/cpu/plan/forward_schedule.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/team/thread_team.h"
#include "session/layer.h"

namespace tf_lstm_ops::session {

// The most rows of a band of a product.
constexpr int64_t kBandRows = cpu::ForwardSchedule::kBandRows;

// Rows of `rows` that take `row_time` nanoseconds each, in bands of `band`.
struct Bands {
  int64_t rows, band;
  double row_time;

  int64_t count() const { return CeilDiv(rows, band); }
};

// The bands of a product: whole tiles, and one for each thread if there are so
// many rows.
inline Bands ProductBands(int64_t rows, double row_time, int threads) {
  const int64_t part = CeilDiv(CeilDiv(rows, threads), kRows) * kRows;
  return {rows, Max(Min(part, kBandRows), kRows), row_time};
}

// Memory for `floats` elements of each row of a band, for each thread that
// ForBands uses: array `array` of the call's memory. None with 0.
class BandMemory {
 public:
  BandMemory(const Bands& bands, int64_t floats, const LayerCall& call,
             int array)
      : size_(bands.band * floats) {
    if (size_ == 0) return;
    memory_ =
        call.memory->Floats(array, Min(call.threads, bands.count()) * size_);
  }
  float* Of(int thread) const {
    return memory_ ? memory_ + thread * size_ : nullptr;
  }

 private:
  const int64_t size_;
  float* memory_ = nullptr;
};

// Calls f(first, count, thread) for each band, on up to `threads` threads.
// `thread` is less than `threads` and the number of bands.
template <class F>
void ForBands(const Bands& bands, int threads, const F& f) {
  if (bands.rows == 0) return;
  const cpu::Rates rates;
  const double time = static_cast<double>(bands.rows) * bands.row_time;
  const int64_t items = bands.count();
  RunItems(items, cpu::ThreadsOfPhase(rates, time, items, threads),
           [&](int64_t item, int thread) {
             const int64_t first = item * bands.band;
             f(first, Min(bands.band, bands.rows - first), thread);
           });
}

// Calls f(first, count) for bands of rows that have `width` elements, each of
// which takes `time` nanoseconds.
template <class F>
void ForRows(int64_t rows, int64_t width, double time, int threads,
             const F& f) {
  constexpr int64_t kElements = 4096;
  const int64_t band = Max(kElements / Max(width, 1), 1);
  ForBands({rows, band, static_cast<double>(width) * time}, threads,
           [&](int64_t first, int64_t count, int) { f(first, count); });
}

// Nanoseconds of an element of a loop of the compiler's vectors.
constexpr double kElementTime = 0.2;

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_BANDS_H_
