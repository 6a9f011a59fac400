#include "backends/cpu/processor/measured_rates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "backends/cpu/engine.h"
#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/memory/first_use.h"

namespace tf_lstm_ops::cpu {
namespace {

// A measured rate differs from the default one by at most this factor. Beyond,
// the measurement was disturbed.
constexpr double kMostFactor = 8;

// What the product kernels take longer than loops that only multiply and add in
// registers, and than loops that only read. On Zen 5: 1.04 to 1.08 and 1.2 to
// 1.3; benchmarks/NOTES.md, "Threads and caches".
constexpr double kKernelMultiplyAdd = 1.06;
constexpr double kKernelRead = 1.25;

// Receives the results of the measured loops, so that compilers keep the loops.
std::atomic<float> g_sink;

// The nanoseconds of the fastest of several calls.
template <class F>
double Fastest(int calls, const F& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int k = 0; k < calls; ++k) {
    const auto begin = Clock::now();
    g_sink = call();
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

double Within(double rate, double default_rate) {
  return std::clamp(rate, default_rate / kMostFactor,
                    default_rate * kMostFactor);
}

// Nanoseconds of a byte, of an array that is read again and again.
double ReadTime(const Engine& engine, const float* from, int64_t bytes,
                int calls) {
  const int64_t size = bytes / static_cast<int64_t>(sizeof(float));
  return Fastest(calls, [&] { return engine.sum(from, size); }) /
         static_cast<double>(bytes);
}

Rates Measure() {
  constexpr int64_t kRounds = 2000;  // of multiply-adds: some microseconds
  constexpr int kCalls = 16;
  constexpr int kFarCalls = 4;  // each reads several times an L2 cache
  const Engine& engine = *SelectedInstructionSet().engine;
  const Caches& caches = TheCaches();
  const Rates defaults;
  Rates rates;
  int64_t flops = 0;
  const double time =
      Fastest(kCalls, [&] { return engine.multiply_add(kRounds, &flops); });
  const double vector_flops =
      2.0 * static_cast<double>(engine.forward.traits.lanes);
  rates.multiply_add = Within(
      kKernelMultiplyAdd * time * vector_flops / static_cast<double>(flops),
      defaults.multiply_add);
  const int64_t near = caches.l2 / 2;
  const int64_t far = Max(Min(4 * caches.l2, caches.shared / 4), 2 * caches.l2);
  const AlignedBuffer memory(static_cast<size_t>(far));
  auto* values = static_cast<float*>(memory.data());
  std::fill_n(values, far / static_cast<int64_t>(sizeof(float)), 1.0F);
  const double near_byte = kKernelRead * ReadTime(engine, values, near, kCalls);
  const double far_byte =
      kKernelRead * ReadTime(engine, values, far, kFarCalls);
  rates.near_byte = Within(near_byte, defaults.near_byte);
  rates.far_byte = Within(far_byte - near_byte, defaults.far_byte);
  return rates;
}

FirstUse<const Rates> g_rates;

}  // namespace

const Rates& MeasuredRates() {
  static constexpr Rates kDefaults;
  try {
    return g_rates.Get([] { return std::make_unique<Rates>(Measure()); });
  } catch (const std::bad_alloc&) {
    return kDefaults;
  }
}

Rates RatesFor(int64_t weight_bytes, double speed) {
  Rates rates = weight_bytes <= TheCaches().l2 ? Rates() : MeasuredRates();
  rates.multiply_add /= speed;
  return rates;
}

}  // namespace tf_lstm_ops::cpu
