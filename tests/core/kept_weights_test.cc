// Tests of backends/cpu/kept_weights.h.
#include "backends/cpu/kept_weights.h"

#include <memory>

#include "harness.h"

namespace tf_lstm_ops::cpu {
namespace {

constexpr WeightsKey kKey = {3, 4, 4, 99};

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

TEST(WithoutWeightsThereIsNothingToUse) {
  PackedWeightsUse none(nullptr);
  CHECK_EQ(none.get() == nullptr, true);
  none.Filled();
}

}  // namespace
}  // namespace tf_lstm_ops::cpu
