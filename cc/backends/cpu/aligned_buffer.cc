#include "backends/cpu/aligned_buffer.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace tf_lstm_ops {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// The smallest block. Each small buffer of a short call fits into it.
constexpr size_t kMinBlock = size_t{64} << 10;

struct Block {
  void* data = nullptr;
  size_t size = 0;
};

Block Allocate(size_t bytes) {
  const size_t alignment = bytes < kHugePage ? kCacheLine : kHugePage;
  Block block;
  block.size = (bytes + alignment) / alignment * alignment;
  if (block.size < bytes ||
      posix_memalign(&block.data, alignment, block.size) != 0) {
    throw std::bad_alloc();
  }
#if defined(__linux__)
  if (alignment == kHugePage) madvise(block.data, block.size, MADV_HUGEPAGE);
#endif
  return block;
}

// Large blocks that no call uses. While one thread has locked the list, other
// calls allocate and free their blocks without it. In a forked child the list
// may stay locked for ever.
class Spares {
 public:
  // Returns the smallest block that is large enough, or null. If null, frees
  // the smaller blocks that the block to be allocated can replace. One block
  // then serves both passes, since the backward pass needs the most memory.
  Block Take(size_t bytes) {
    Block found;
    if (busy_.exchange(true)) return found;
    Block* best = nullptr;
    for (Block& spare : blocks_) {
      if (!Serves(spare.size, bytes)) continue;
      if (best == nullptr || spare.size < best->size) best = &spare;
    }
    if (best != nullptr) {
      std::swap(found, *best);
    } else {
      for (Block& spare : blocks_) {
        if (Serves(bytes, spare.size)) std::free(std::exchange(spare, {}).data);
      }
    }
    busy_.store(false);
    return found;
  }

  // Keeps this block and the most recent other blocks, up to kKeptBytes in
  // total. Frees the rest.
  void Give(Block block) {
    if (busy_.exchange(true)) return std::free(block.data);
    size_t kept = 0;
    for (Block& spare : blocks_) {  // the newest first
      std::swap(spare, block);
      if (kept + spare.size > AlignedBuffer::kKeptBytes) {
        std::free(spare.data);
        spare = {};
      }
      kept += spare.size;
    }
    busy_.store(false);
    std::free(block.data);
  }

 private:
  // Whether a block is large enough and not much too large.
  static bool Serves(size_t size, size_t bytes) {
    return size >= bytes && size / 4 <= bytes;
  }

  static constexpr int kCount = 8;
  Block blocks_[kCount];
  std::atomic<bool> busy_{false};
};

// Small blocks are kept apart, so that they do not displace large ones.
Spares g_spares, g_small_spares;

Spares& SparesOf(size_t bytes) {
  return bytes < kHugePage ? g_small_spares : g_spares;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  bytes = std::max(bytes, kMinBlock);
  Block block = SparesOf(bytes).Take(bytes);
  if (block.data == nullptr) block = Allocate(bytes);
  data_ = block.data;
  size_ = block.size;
}

AlignedBuffer::~AlignedBuffer() { SparesOf(size_).Give({data_, size_}); }

}  // namespace tf_lstm_ops
