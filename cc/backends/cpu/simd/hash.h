// HashBytes: a 64-bit hash of an array, at the rate at which memory is read.
//
// Word w of the array, of 8 bytes, goes to a lane: p = 9 (rotate(s, 7) ^ w),
// s = p ^ p >> 32. MixHash adds the lanes to the hash in turn. Each of these is
// a bijection of each operand, so arrays that differ in one word have different
// hashes. A product leaves a difference in the highest bit, the sign of a
// number, where it is. The shifts spread it, so a second one cannot undo it,
// and the rotation takes it to bits of the next word that have little value.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_HASH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_HASH_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Bytes after the end of the array count as zeros.
inline uint64_t HashBytes(const void* data, size_t size) {
  // Vectors of lanes: a step of one takes seven cycles; four hide most of them.
  constexpr int kVectors = 4;
  constexpr size_t kStep = kVectors * kVectorBytes;
  using V = VecT<uint64_t>;
  const char* bytes = static_cast<const char*>(data);
  V state[kVectors] = {};
  const auto add = [&state](const char* from) {
    for (int k = 0; k < kVectors; ++k) {
      V word;
      std::memcpy(&word, from + k * kVectorBytes, sizeof word);
      const V mixed = (state[k] << 7 | state[k] >> 57) ^ word;
      const V product = mixed + (mixed << 3);
      state[k] = product ^ product >> 32;
    }
  };
  size_t at = 0;
  for (; at + kStep <= size; at += kStep) add(bytes + at);
  if (at < size) {
    char rest[kStep] = {};
    std::memcpy(rest, bytes + at, size - at);
    add(rest);
  }
  uint64_t lanes[kStep / sizeof(uint64_t)];
  std::memcpy(lanes, state, sizeof lanes);
  uint64_t hash = 0;
  for (const uint64_t lane : lanes) hash = MixHash(hash, lane);
  return hash;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_HASH_H_
