#include "backends/cpu/memory/aligned_buffer.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "backends/cpu/memory/huge_pages.h"

namespace tf_lstm_ops {
namespace {

constexpr size_t kCacheLine = 64;
// The smallest block. Each small buffer of a short call fits into it.
constexpr size_t kMinBlock = size_t{64} << 10;

struct Block {
  void* data = nullptr;
  size_t size = 0;
};

std::align_val_t Alignment(size_t size) {
  return std::align_val_t{size < kHugePage ? kCacheLine : kHugePage};
}

// Returns a block of more than `bytes`.
Block Allocate(size_t bytes) {
  size_t size = (bytes / kCacheLine + 1) * kCacheLine;
  if (size >= kHugePage) size = (bytes / kHugePage + 1) * kHugePage;
  if (size < bytes) throw std::bad_alloc();
  Block block = {::operator new(size, Alignment(size)), size};
  UseHugePages(block.data, size);
  return block;
}

void Free(Block block) { ::operator delete(block.data, Alignment(block.size)); }

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
        if (Serves(bytes, spare.size)) Free(std::exchange(spare, {}));
      }
    }
    busy_.store(false);
    return found;
  }

  // Keeps this block and the most recent other blocks, up to kKeptBytes in
  // total. Frees the rest.
  void Give(Block block) {
    if (busy_.exchange(true)) return Free(block);
    size_t kept = 0;
    for (Block& spare : blocks_) {  // the newest first
      std::swap(spare, block);
      if (kept + spare.size > AlignedBuffer::kKeptBytes) {
        Free(std::exchange(spare, {}));
      }
      kept += spare.size;
    }
    busy_.store(false);
    Free(block);
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
