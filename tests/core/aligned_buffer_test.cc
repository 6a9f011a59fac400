// Tests of backends/cpu/memory/aligned_buffer.h.
#include "backends/cpu/memory/aligned_buffer.h"

#include <cstddef>
#include <sstream>

#include "harness.h"

namespace tf_lstm_ops {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

void* Used(size_t bytes) { return AlignedBuffer(bytes).data(); }

TEST(LargeBuffersAreUsedAgain) {
  void* const used = Used(9 * kMebibyte);
  CHECK(Used(9 * kMebibyte) == used);
  CHECK(Used(3 * kMebibyte) == used);
  const AlignedBuffer first(9 * kMebibyte), second(9 * kMebibyte);
  CHECK(first.data() == used && second.data() != used);
}

TEST(SmallBuffersAreUsedAgain) {
  void* const used = Used(100);
  CHECK(Used(1000) == used);
  const AlignedBuffer first(100), second(100);
  CHECK(first.data() == used && second.data() != used);
}

TEST(BuffersThatALargerOneServesForAreFreed) {
  {
    const AlignedBuffer small(4 * kMebibyte), smaller(3 * kMebibyte);
  }
  void* const large = Used(9 * kMebibyte);
  for (const size_t size : {3, 4, 9}) CHECK(Used(size * kMebibyte) == large);
}

TEST(BuffersAreNotWastedOnSmallOnes) {
  void* const large = Used(40 * kMebibyte);
  CHECK(Used(3 * kMebibyte) != large);
  CHECK(Used(40 * kMebibyte) == large);
}

}  // namespace
}  // namespace tf_lstm_ops
