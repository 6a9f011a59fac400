// Tests of backends/cpu/weights/kept_weights.h, hash_weights.h and simd/hash.h.
#include "backends/cpu/weights/kept_weights.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#define TF_LSTM_OPS_SIMD simd_test
#include "backends/cpu/simd/vector/hash.h"
#undef TF_LSTM_OPS_SIMD
#include "backends/cpu/weights/hash_weights.h"
#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

constexpr WeightsKey kKey = {3, 4, 4, 1, 0, 5, 99, 7};

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

TEST(KernelsShareWeightsThatOneOfThemKeeps) {
  std::optional<KeptWeights> first(std::in_place);
  KeptWeights second;
  PackedWeightsUse(first->Find(kKey)).Filled();
  PackedWeights* shared = PackedWeightsUse(second.Find(kKey)).get();
  CHECK_EQ(shared->filled(), true);
  CHECK_EQ(shared == PackedWeightsUse(first->Find(kKey)).get(), true);
  first.reset();
  CHECK_EQ(PackedWeightsUse(second.Find(kKey)).get() == shared, true);
  {
    KeptWeights third;
    CHECK_EQ(PackedWeightsUse(third.Find(kKey)).get() == shared, true);
  }
}

TEST(WeightsThatNoKernelKeepsAreFreed) {
  {
    KeptWeights kept;
    PackedWeightsUse(kept.Find(kKey)).Filled();
  }
  KeptWeights kept;
  CHECK_EQ(PackedWeightsUse(kept.Find(kKey)).get()->filled(), false);
}

// A call that uses the weights of a key. Returns whether it had to fill them,
// with so many bytes.
bool Fills(KeptWeights* kept, uint64_t hash, size_t bytes = 64) {
  PackedWeightsUse use(kept->Find({3, 4, 4, 1, 0, 5, hash}));
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

HashKey RandomKey(uint64_t seed) {
  std::mt19937_64 random(seed);
  HashKey key;
  for (uint32_t& word : key.words) word = static_cast<uint32_t>(random());
  for (WeightsHash* points : {&key.block_points, &key.array_points}) {
    for (uint64_t& point : *points) point = random() >> 3;
  }
  return key;
}

// The definition, with the sums of NH in the order of the array.
WeightsHash Expected(const std::vector<unsigned char>& bytes,
                     const HashKey& key) {
  __extension__ using Wide = unsigned __int128;
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  WeightsHash hash = {};
  for (size_t block = 0; block < bytes.size(); block += HashKey::kBlockBytes) {
    for (size_t k = 0; k < 2; ++k) {
      const auto word = [&](size_t w) {
        uint32_t value = 0;
        for (size_t b = 0; b < 4; ++b) {
          const size_t at = block + 4 * w + b;
          value |= (at < bytes.size() ? uint32_t{bytes[at]} : 0) << 8 * b;
        }
        return value + key.words[w + k * HashKey::kShift / 4];
      };
      uint64_t sum = 0;
      const size_t size = std::min(HashKey::kBlockBytes, bytes.size() - block);
      const size_t words = (size + HashKey::kShift - 1) / HashKey::kShift *
                           (HashKey::kShift / 4);
      for (size_t w = 0; w < words; w += 2) {
        sum += uint64_t{word(w)} * word(w + 1);
      }
      for (const uint64_t half : {sum >> 32, sum & 0xffffffff}) {
        hash[k] = static_cast<uint64_t>(static_cast<Wide>(hash[k] + half) *
                                        key.block_points[k] % kPrime);
      }
    }
  }
  return hash;
}

TEST(TheHashIsThatOfItsDefinition) {
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  const HashKey key = RandomKey(1);
  std::mt19937 random(2);
  for (const size_t size :
       {0, 1, 3, 4, 63, 64, 65, 4095, 4096, 4097, 4160, 8192, 12345}) {
    std::vector<unsigned char> bytes(size);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    WeightsHash hash = simd_test::HashBytes(bytes.data(), size, key);
    for (uint64_t& value : hash) value %= kPrime;  // a number of this residue
    CHECK_EQ(hash == Expected(bytes, key), true);
  }
}

// Changes of an element that has `fraction` bits of fraction.
template <class Bits>
Bits Changed(Bits bits, int fraction, std::mt19937_64& random) {
  constexpr int kTop = 8 * sizeof(Bits) - 1;
  const Bits one = 1;
  switch (random() % 8) {
    case 0:
      return bits ^ one << kTop;  // sign
    case 1:
      return bits + (one << fraction);  // times two
    case 2:
      return bits - (one << fraction);  // half
    case 3:
      return bits ^ 1;  // least significant bit
    case 4:
      return bits ^ one << (fraction - 1);  // highest of the fraction
    case 5:
      return bits ^ one << random() % (kTop + 1);
    case 6:
      return 0;
    default:
      return static_cast<Bits>(random());
  }
}

// Random changes of up to six neighbouring or distant elements, or two elements
// that change places, give other hashes.
template <class Bits, class Number>
void CheckChanges(int fraction, int calls) {
  constexpr size_t kCount = 512 / sizeof(Bits) + 3;  // a rest, too
  const HashKey key = RandomKey(3);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<Bits> weights(kCount);
  for (Bits& bits : weights) {
    const auto number = static_cast<Number>(normal(random));
    std::memcpy(&bits, &number, sizeof bits);
  }
  const auto hash = [&](const std::vector<Bits>& of) {
    return simd_test::HashBytes(of.data(), kCount * sizeof(Bits), key);
  };
  const WeightsHash before = hash(weights);
  std::vector<Bits> changed = weights;
  int equal = 0;
  for (int call = 0; call < calls; ++call) {
    size_t at[6];
    const size_t count = 1 + random() % 6;
    for (size_t k = 0; k < count; ++k) {
      at[k] = k && random() % 2 ? (at[k - 1] + 1) % kCount : random() % kCount;
      changed[at[k]] = Changed(changed[at[k]], fraction, random);
    }
    if (random() % 8 == 0) std::swap(changed[at[0]], changed[at[count - 1]]);
    equal += changed != weights && hash(changed) == before;
    for (size_t k = 0; k < count; ++k) changed[at[k]] = weights[at[k]];
  }
  CHECK_EQ(equal, 0);
}

TEST(SparseChangesDoNotCancel) {
  // 10^7 in the slow test of test_core.py.
  const char* calls = std::getenv("TF_LSTM_OPS_HASH_CALLS");
  const int count = calls ? std::atoi(calls) : 100000;
  CheckChanges<uint32_t, float>(23, count);
  CheckChanges<uint64_t, double>(52, count);
}

// Blocks, items of threads and arrays that change places have other hashes.
TEST(PartsThatChangePlaces) {
  constexpr size_t kPart = 128 << 10;
  std::mt19937 random(7);
  std::vector<uint32_t> weights(4 * kPart / 4);
  for (uint32_t& word : weights) word = static_cast<uint32_t>(random());
  const auto hash = [&] {
    const WeightBytes arrays[] = {{weights.data(), 3 * kPart},
                                  {&weights[3 * kPart / 4], kPart}};
    return HashWeights(arrays, 2, 1);
  };
  const WeightsHash before = hash();
  CHECK_EQ(hash() == before, true);
  for (const size_t bytes : {size_t{4}, size_t{64}, HashKey::kBlockBytes}) {
    for (const size_t a : {size_t{0}, kPart, 2 * kPart}) {
      for (const size_t b : {kPart - bytes, kPart + HashKey::kBlockBytes,
                             3 * kPart, 4 * kPart - bytes}) {
        auto* first = &weights[a / 4];
        std::swap_ranges(first, first + bytes / 4, &weights[b / 4]);
        CHECK_EQ(hash() == before, false);
        std::swap_ranges(first, first + bytes / 4, &weights[b / 4]);
      }
    }
  }
  CHECK_EQ(hash() == before, true);
}

}  // namespace
}  // namespace tf_lstm_ops::cpu
