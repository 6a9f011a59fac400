// The hash by which a call finds its weights packed: its value and its key.
//
// An array is hashed in blocks. NH, the first stage of UMAC (RFC 4418, section
// 5.2), makes two numbers of a block: the sums, modulo 2^64, of the products
// (a + k)(b + l) of its 32-bit words a and b, for the words k and l of the key.
// Other blocks have the same sum for one key of 2^32. The two sums have keys of
// their own. Polynomials at a secret point, modulo 2^61 - 1, add up the blocks.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHTS_HASH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHTS_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace tf_lstm_ops::cpu {

// Two hashes. Both are equal for other data with a probability of 2^-64.
using WeightsHash = std::array<uint64_t, 2>;

struct HashKey {
  // Bytes of a block. The key of a block stays in the L1 cache.
  static constexpr size_t kBlockBytes = 4096;
  // The second sum uses the key of the first one from this byte on.
  static constexpr size_t kShift = 64;

  alignas(64) std::array<uint32_t, (kBlockBytes + kShift) / 4> words;
  // Points of the polynomials of blocks, and of those of arrays or their parts.
  // Below 2^61 - 1.
  WeightsHash block_points, array_points;
};

// A number with the residue of (hash + value) * point modulo 2^61 - 1, below
// 2^63. The arguments are below 2^63, the point below 2^61.
inline uint64_t AddToPolynomial(uint64_t hash, uint64_t value, uint64_t point) {
  __extension__ using Wide = unsigned __int128;
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  const auto folded = [](uint64_t x) { return (x & kPrime) + (x >> 61); };
  const Wide product = static_cast<Wide>(folded(hash) + folded(value)) * point;
  return (static_cast<uint64_t>(product) & kPrime) +
         static_cast<uint64_t>(product >> 61);
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHTS_HASH_H_
