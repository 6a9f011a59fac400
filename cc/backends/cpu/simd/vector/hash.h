// HashBytes: the hash of weights_hash.h of an array, at the rate of memory.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_HASH_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_HASH_H_

#include <cstring>

#include "backends/cpu/simd/vector/vec.h"
#include "backends/cpu/weights/weights_hash.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Adds the products of neighbouring 32-bit words, each plus a word of the key,
// of kVectorBytes bytes.
TF_LSTM_OPS_INLINE void AddProducts(const char* bytes, const char* key,
                                    VecT<uint64_t>* sum) {
  VecT<uint32_t> words, keys;
  std::memcpy(&words, bytes, sizeof words);
  std::memcpy(&keys, key, sizeof keys);
  const auto low = reinterpret_cast<VecT<uint64_t>>(words + keys);
  const VecT<uint64_t> high = low >> 32;
#if defined(__AVX512F__)
  *sum += reinterpret_cast<VecT<uint64_t>>(_mm512_maskz_mul_epu32(
      0xff, reinterpret_cast<__m512i>(low), reinterpret_cast<__m512i>(high)));
#elif defined(__AVX2__)
  *sum += reinterpret_cast<VecT<uint64_t>>(_mm256_mul_epu32(
      reinterpret_cast<__m256i>(low), reinterpret_cast<__m256i>(high)));
#elif defined(__x86_64__)
  *sum += reinterpret_cast<VecT<uint64_t>>(_mm_mul_epu32(
      reinterpret_cast<__m128i>(low), reinterpret_cast<__m128i>(high)));
#else
  *sum = vmlal_u32(*sum, vmovn_u64(low), vmovn_u64(high));
#endif
}

// The sum of the elements.
inline uint64_t Total(VecT<uint64_t> sum) {
  uint64_t total = 0;
  for (size_t k = 0; k < sizeof sum / sizeof total; ++k) total += sum[k];
  return total;
}

// Adds a block to a hash. The number of bytes is a multiple of kShift.
inline void HashBlock(const char* bytes, size_t size, const cpu::HashKey& key,
                      cpu::WeightsHash* hash) {
  constexpr size_t kShift = cpu::HashKey::kShift;
  const auto* words = reinterpret_cast<const char*>(key.words.data());
  VecT<uint64_t> sums[2] = {};
  for (size_t at = 0; at < size; at += kShift) {
    for (size_t k = at; k < at + kShift; k += kVectorBytes) {
      AddProducts(bytes + k, words + k, &sums[0]);
      AddProducts(bytes + k, words + k + kShift, &sums[1]);
    }
  }
  for (int k = 0; k < 2; ++k) {
    const uint64_t sum = Total(sums[k]);
    uint64_t& value = (*hash)[k];
    value = cpu::AddToPolynomial(value, sum >> 32, key.block_points[k]);
    value = cpu::AddToPolynomial(value, static_cast<uint32_t>(sum),
                                 key.block_points[k]);
  }
}

// Bytes after the end of the array count as zeros.
inline cpu::WeightsHash HashBytes(const void* data, size_t size,
                                  const cpu::HashKey& key) {
  constexpr size_t kBlock = cpu::HashKey::kBlockBytes;
  const char* bytes = static_cast<const char*>(data);
  cpu::WeightsHash hash = {};
  size_t at = 0;
  for (; at + kBlock <= size; at += kBlock) {
    HashBlock(bytes + at, kBlock, key, &hash);
  }
  if (at < size) {
    alignas(64) char rest[kBlock] = {};
    std::memcpy(rest, bytes + at, size - at);
    constexpr size_t kShift = cpu::HashKey::kShift;
    HashBlock(rest, (size - at + kShift - 1) / kShift * kShift, key, &hash);
  }
  return hash;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_HASH_H_
