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

}  // namespace

uint64_t HashWeights(const WeightBytes* arrays, int count, int threads) {
  std::vector<WeightBytes> items;
  for (int k = 0; k < count; ++k) {
    for (size_t at = 0; at < arrays[k].size; at += kItemBytes) {
      items.push_back({static_cast<const char*>(arrays[k].data) + at,
                       std::min(kItemBytes, arrays[k].size - at)});
    }
  }
  std::vector<uint64_t> hashes(items.size());
  const Engine& engine = *SelectedInstructionSet().engine;
  const auto size = static_cast<int64_t>(items.size());
  const Rates rates;
  const double time = static_cast<double>(size * int64_t{kItemBytes}) *
                      (rates.near_byte + rates.far_byte);
  RunItems(size, ThreadsOfPhase(rates, time, size, threads),
           [&](int64_t k, int) {
             hashes[k] = engine.hash(items[k].data, items[k].size);
           });
  uint64_t hash = 0;
  for (const uint64_t of_item : hashes) hash = MixHash(hash, of_item);
  return hash;
}

}  // namespace tf_lstm_ops::cpu
