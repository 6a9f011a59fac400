// Tests of core/float16.h.
#include "core/float16.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "harness.h"

namespace tf_lstm_ops {
namespace {

TEST(HalfRoundTripsExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = {static_cast<uint16_t>(bits)};
    const float value = half.ToFloat();
    if (std::isnan(value)) {
      CHECK(std::isnan(Half::FromFloat(value).ToFloat()));
    } else {
      CHECK_EQ(Half::FromFloat(value).bits, half.bits);
    }
  }
}

// The neighbours of a 16-bit value and the points between them tell whether
// rounding is to nearest, ties to even.
template <class Narrow>
void CheckRounding(uint16_t infinity) {
  for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const float low = Narrow{bits}.ToFloat();
    const float high = Narrow{static_cast<uint16_t>(bits + 1)}.ToFloat();
    const float middle = low / 2 + high / 2;
    const float below = std::nextafter(middle, low);
    const float above = std::nextafter(middle, high);
    if (!(low < below && above < high)) continue;  // below float's subnormals
    const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    CHECK_EQ(Narrow::FromFloat(middle).bits, even);
    CHECK_EQ(Narrow::FromFloat(below).bits, bits);
    CHECK_EQ(Narrow::FromFloat(above).bits, bits + 1);
    CHECK_EQ(Narrow::FromFloat(-above).bits, (bits + 1) | 0x8000);
  }
}

TEST(HalfRoundsToNearestEven) { CheckRounding<Half>(0x7c00); }
TEST(BFloat16RoundsToNearestEven) { CheckRounding<BFloat16>(0x7f80); }

TEST(NarrowTypesOverflowToInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK_EQ(Half::FromFloat(65519.9f).ToFloat(), 65504.0f);
  CHECK_EQ(Half::FromFloat(65520.0f).ToFloat(), infinity);
  CHECK_EQ(Half::FromFloat(-infinity).ToFloat(), -infinity);
  CHECK_EQ(BFloat16::FromFloat(infinity).ToFloat(), infinity);
  CHECK(std::isnan(BFloat16::FromFloat(std::nanf("")).ToFloat()));
  CHECK(std::isnan(Half::FromFloat(std::nanf("")).ToFloat()));
}

}  // namespace
}  // namespace tf_lstm_ops
