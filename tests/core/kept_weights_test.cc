// Tests of backends/cpu/kept_weights.h and simd/hash.h.
#include "backends/cpu/kept_weights.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

#define TF_LSTM_OPS_SIMD simd_test
#include "backends/cpu/simd/hash.h"
#undef TF_LSTM_OPS_SIMD
#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

constexpr WeightsKey kKey = {3, 4, 4, 0, 99};

TEST(OneCallFillsPackedWeights) {
  KeptWeights kept;
  PackedWeightsUse first(kept.Find(kKey)), meanwhile(kept.Find(kKey));
  CHECK_EQ(first.get() != nullptr, true);
  CHECK_EQ(first.get()->filled(), false);
  CHECK_EQ(meanwhile.get() == nullptr, true);  // packs its own
  first.Filled();
  PackedWeightsUse next(kept.Find(kKey));
  CHECK_EQ(next.get() == first.get(), true);
  CHECK_EQ(next.get()->filled(), true);
}

TEST(AFailedCallLeavesThemToTheNext) {
  KeptWeights kept;
  {
    const PackedWeightsUse failed(kept.Find(kKey));
  }  // no memory
  PackedWeightsUse next(kept.Find(kKey));
  CHECK_EQ(next.get() != nullptr, true);
  CHECK_EQ(next.get()->filled(), false);
}

TEST(AUserOfFilledWeightsLeavesThemFilled) {
  KeptWeights kept;
  {
    PackedWeightsUse(kept.Find(kKey)).Filled();
  }
  {
    const PackedWeightsUse reads(kept.Find(kKey));
  }
  CHECK_EQ(PackedWeightsUse(kept.Find(kKey)).get()->filled(), true);
}

TEST(AnyPartOfTheKeySelectsOtherWeights) {
  for (size_t k = 0; k < kKey.size(); ++k) {
    KeptWeights kept;
    {
      PackedWeightsUse(kept.Find(kKey)).Filled();
    }
    WeightsKey other = kKey;
    ++other[k];
    CHECK_EQ(PackedWeightsUse(kept.Find(other)).get()->filled(), false);
  }
}

// A call that uses the weights of a key. Returns whether it had to fill them,
// with so many bytes.
bool Fills(KeptWeights* kept, uint64_t hash, size_t bytes = 64) {
  PackedWeightsUse use(kept->Find({3, 4, 4, 0, hash}));
  if (use.get()->filled()) return false;
  use.get()->Memory(bytes);
  use.Filled();
  return true;
}

TEST(LayersInTurnFillTheirWeightsOnce) {
  KeptWeights kept;
  int filled = 0;
  for (int round = 0; round < 5; ++round) {
    for (uint64_t layer = 0; layer < KeptWeights::kSets; ++layer) {
      filled += Fills(&kept, layer);
    }
  }
  CHECK_EQ(filled, static_cast<int>(KeptWeights::kSets));
}

TEST(TheSetUsedLongestAgoMakesRoom) {
  KeptWeights kept;
  for (uint64_t layer = 0; layer < KeptWeights::kSets; ++layer) {
    Fills(&kept, layer);
  }
  CHECK_EQ(Fills(&kept, 0), false);
  CHECK_EQ(Fills(&kept, 99), true);  // instead of 1
  CHECK_EQ(Fills(&kept, 0), false);
  CHECK_EQ(Fills(&kept, 2), false);
  CHECK_EQ(Fills(&kept, 1), true);
}

TEST(BytesOfKeptWeightsAreLimited) {
  KeptWeights kept;
  constexpr size_t kHalf = KeptWeights::kBytes / 2;
  const auto set = kept.Find({3, 4, 4, 0});
  set->Memory(kHalf);
  kept.Find({3, 4, 4, 1})->Memory(kHalf + 1);
  CHECK_EQ(kept.Find({3, 4, 4, 0}) == set, true);
  kept.Find({3, 4, 4, 2});  // more than the limit beside it: 1 goes
  CHECK_EQ(kept.Find({3, 4, 4, 1})->bytes(), size_t{0});
  CHECK_EQ(kept.Find({3, 4, 4, 0}) == set, true);
}

TEST(UnusedWeightsAreFreed) {
  KeptWeights kept;
  const std::weak_ptr<PackedWeights> old = kept.Find({3, 4, 4, 0});
  for (uint64_t call = 0; call < KeptWeights::kIdleCalls; ++call) {
    Fills(&kept, 1);
  }
  CHECK_EQ(old.expired(), false);
  Fills(&kept, 1);
  CHECK_EQ(old.expired(), true);
}

TEST(ThreadsShareKeptWeights) {
  KeptWeights kept;
  std::atomic<int> filled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t k = 0; k < 200; ++k) {
        PackedWeightsUse use(kept.Find({3, 4, 4, 0, (k + t) % 6}));
        if (use.get() == nullptr || use.get()->filled()) continue;
        use.get()->Memory(64);
        use.Filled();
        ++filled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(filled >= 6);
}

TEST(WithoutWeightsThereIsNothingToUse) {
  PackedWeightsUse none(nullptr);
  CHECK_EQ(none.get() == nullptr, true);
  none.Filled();
}

// Changes of an element that has `fraction` bits of fraction.
template <class Bits>
std::vector<Bits> Changed(Bits bits, int fraction) {
  constexpr int kTop = 8 * sizeof(Bits) - 1;
  const Bits one = 1;
  return {bits ^ (one << kTop),            // sign
          bits + (one << fraction),        // times two
          bits - (one << fraction),        // half
          bits ^ 1,                        // least significant bit
          bits ^ (one << (fraction - 1)),  // highest bit of the fraction
          0,
          one << kTop};  // -0
}

// All pairs of changes of two elements, and all single ones, give different
// hashes: 109,000 of floats and 29,000 of doubles.
template <class Bits, class Number>
void CheckPairs(int fraction) {
  constexpr size_t kCount = 256 / sizeof(Bits) + 3;  // steps, and a rest
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<Bits> weights(kCount);
  for (Bits& bits : weights) {
    const auto number = static_cast<Number>(normal(random));
    std::memcpy(&bits, &number, sizeof bits);
  }
  std::unordered_set<uint64_t> hashes;
  size_t calls = 0;
  const auto add = [&] {
    hashes.insert(simd_test::HashBytes(weights.data(), kCount * sizeof(Bits)));
    ++calls;
  };
  add();
  for (size_t a = 0; a < kCount; ++a) {
    const Bits before_a = weights[a];
    for (const Bits changed_a : Changed(before_a, fraction)) {
      weights[a] = changed_a;
      add();
      for (size_t b = 0; b < a; ++b) {
        const Bits before_b = weights[b];
        for (const Bits changed_b : Changed(before_b, fraction)) {
          weights[b] = changed_b;
          add();
        }
        weights[b] = before_b;
      }
    }
    weights[a] = before_a;
  }
  CHECK_EQ(hashes.size(), calls);
}

TEST(ChangesOfTwoElementsDoNotCancel) {
  CheckPairs<uint32_t, float>(23);
  CheckPairs<uint64_t, double>(52);
}

}  // namespace
}  // namespace tf_lstm_ops::cpu
