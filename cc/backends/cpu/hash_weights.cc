#include "backends/cpu/hash_weights.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/cost.h"
#include "backends/cpu/engine.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::cpu {
namespace {

// Bytes that one item hashes: one or two microseconds of work, many times what
// it takes to hand out an item.
constexpr size_t kItemBytes = 128 << 10;

// Arrays cut into items of at most kItemBytes bytes, and their hashes.
struct HashJob {
  std::vector<WeightBytes> items;
  std::vector<uint64_t> hashes;

  static int64_t Items(const void* state, int64_t) {
    return static_cast<int64_t>(
        static_cast<const HashJob*>(state)->items.size());
  }
  static void Run(void* state, int64_t, int64_t item, int) {
    auto* job = static_cast<HashJob*>(state);
    const WeightBytes& bytes = job->items[item];
    job->hashes[item] =
        SelectedInstructionSet().engine->hash(bytes.data, bytes.size);
  }
};

}  // namespace

uint64_t HashWeights(const WeightBytes* arrays, int count, int threads) {
  HashJob job;
  for (int k = 0; k < count; ++k) {
    for (size_t at = 0; at < arrays[k].size; at += kItemBytes) {
      job.items.push_back({static_cast<const char*>(arrays[k].data) + at,
                           std::min(kItemBytes, arrays[k].size - at)});
    }
  }
  job.hashes.resize(job.items.size());
  const auto items = static_cast<int64_t>(job.items.size());
  const Rates rates;
  const double time = static_cast<double>(items * int64_t{kItemBytes}) *
                      (rates.near_byte + rates.far_byte);
  RunJob({&job, 1, &HashJob::Items, &HashJob::Run},
         ThreadsOfPhase(rates, time, items, threads));
  uint64_t hash = 0;
  for (const uint64_t of_item : job.hashes) hash = MixHash(hash, of_item);
  return hash;
}

}  // namespace tf_lstm_ops::cpu
