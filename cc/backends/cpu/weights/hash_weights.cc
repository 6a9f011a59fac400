#include "backends/cpu/weights/hash_weights.h"

#include <algorithm>
#include <random>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/plan/cost.h"
#include "backends/cpu/team/thread_team.h"

namespace tf_lstm_ops::cpu {
namespace {

// Bytes that one item hashes: one or two microseconds of work, many times what
// it takes to hand out an item.
constexpr size_t kItemBytes = 128 << 10;

// A key of the process. Python and C cannot read it.
HashKey MakeKey() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(),
                     device(), device(), device(), device()};
  std::mt19937_64 random(seed);
  HashKey key;
  for (uint32_t& word : key.words) word = static_cast<uint32_t>(random());
  for (WeightsHash* points : {&key.block_points, &key.array_points}) {
    for (uint64_t& point : *points) point = random() >> 3;
  }
  return key;
}

}  // namespace

WeightsHash HashWeights(const WeightBytes* arrays, int count, int threads) {
  std::vector<WeightBytes> items;
  for (int k = 0; k < count; ++k) {
    for (size_t at = 0; at < arrays[k].size; at += kItemBytes) {
      items.push_back({static_cast<const char*>(arrays[k].data) + at,
                       std::min(kItemBytes, arrays[k].size - at)});
    }
  }
  static const HashKey key = MakeKey();
  std::vector<WeightsHash> hashes(items.size());
  const Engine& engine = *SelectedInstructionSet().engine;
  const auto size = static_cast<int64_t>(items.size());
  const Rates rates;
  const double time = static_cast<double>(size * int64_t{kItemBytes}) *
                      (rates.near_byte + rates.far_byte);
  RunItems(size, ThreadsOfPhase(rates, time, size, threads),
           [&](int64_t k, int) {
             hashes[k] = engine.hash(items[k].data, items[k].size, key);
           });
  WeightsHash hash = {};
  for (const WeightsHash& of_item : hashes) {
    for (size_t k = 0; k < hash.size(); ++k) {
      hash[k] = AddToPolynomial(hash[k], of_item[k], key.array_points[k]);
    }
  }
  return hash;
}

}  // namespace tf_lstm_ops::cpu
