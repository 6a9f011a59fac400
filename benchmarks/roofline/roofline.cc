#include "roofline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backends/cpu/memory/aligned_buffer.h"

namespace roofline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.02;

// Receives the results of the measured loops, so that compilers keep the loops.
std::atomic<float> g_sink;

// Returns the units of work per second of the best round. In a round, all
// threads call run(thread) until the round's time is over. A call is one unit
// of work.
double BestRate(int threads, const std::function<float(int)>& run) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> waiting{threads};
    std::vector<double> rates(threads);
    const auto work = [&](int thread) {
      run(thread);  // warm-up: clock frequency and cache
      for (--waiting; waiting > 0;) std::this_thread::yield();
      const auto start = Clock::now();
      int64_t calls = 0;
      double seconds = 0;
      while (seconds < kRoundSeconds) {
        g_sink = run(thread);
        ++calls;
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
      }
      rates[thread] = static_cast<double>(calls) / seconds;
    };
    std::vector<std::thread> others;
    const auto join = [&others] {
      for (std::thread& other : others) other.join();
    };
    try {
      for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    } catch (const std::exception&) {
      waiting = 0;  // those that were started wait for no others
      join();
      throw;
    }
    work(0);
    join();
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

double MeasureFlops(float (*multiply_add)(int64_t rounds, int64_t* flops),
                    int threads) {
  constexpr int64_t kSteps = 20000;
  int64_t flops = 0;
  multiply_add(1, &flops);
  return BestRate(threads,
                  [&](int) {
                    int64_t ignored;
                    return multiply_add(kSteps, &ignored);
                  }) *
         static_cast<double>(flops * kSteps);
}

double MeasureReadBandwidth(float (*sum)(const float* x, int64_t n),
                            int64_t bytes, int threads) {
  using tf_lstm_ops::AlignedBuffer;
  const int64_t part = std::max<int64_t>(
      bytes / threads / static_cast<int64_t>(sizeof(float)), 1024);
  std::vector<std::unique_ptr<AlignedBuffer>> buffers;
  for (int t = 0; t < threads; ++t) {
    buffers.push_back(std::make_unique<AlignedBuffer>(part * sizeof(float)));
    std::fill_n(static_cast<float*>(buffers.back()->data()), part, 1.0f);
  }
  return BestRate(threads,
                  [&](int thread) {
                    return sum(
                        static_cast<const float*>(buffers[thread]->data()),
                        part);
                  }) *
         static_cast<double>(part) * sizeof(float);
}

}  // namespace roofline
