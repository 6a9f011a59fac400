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
constexpr size_t kHashBlock = 128 << 10;

// Arrays cut into blocks of at most kHashBlock bytes, and their hashes.
struct HashJob {
  std::vector<WeightBytes> blocks;
  std::vector<uint64_t> hashes;

  static int64_t Items(const void* state, int64_t) {
    return static_cast<int64_t>(
        static_cast<const HashJob*>(state)->blocks.size());
  }
  static void Run(void* state, int64_t, int64_t item, int) {
    auto* job = static_cast<HashJob*>(state);
    const WeightBytes& block = job->blocks[item];
    job->hashes[item] =
        SelectedInstructionSet().engine->hash(block.data, block.size);
  }
};

}  // namespace

uint64_t HashWeights(const WeightBytes* arrays, int count, int threads) {
  HashJob job;
  for (int k = 0; k < count; ++k) {
    for (size_t at = 0; at < arrays[k].size; at += kHashBlock) {
      job.blocks.push_back({static_cast<const char*>(arrays[k].data) + at,
                            std::min(kHashBlock, arrays[k].size - at)});
    }
  }
  job.hashes.resize(job.blocks.size());
  const auto blocks = static_cast<int64_t>(job.blocks.size());
  const Rates rates;
  const double time = static_cast<double>(blocks * int64_t{kHashBlock}) *
                      (rates.near_byte + rates.far_byte);
  RunJob({&job, 1, &HashJob::Items, &HashJob::Run},
         ThreadsOfPhase(rates, time, blocks, threads));
  uint64_t hash = 0;
  for (const uint64_t block : job.hashes) hash = MixHash(hash, block);
  return hash;
}

}  // namespace tf_lstm_ops::cpu
