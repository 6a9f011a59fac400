// DropoutRule: which outputs of a layer are dropped before the next layer.
//
// An element is dropped if the upper 32 bits of the splitmix64 output at its
// position are below a threshold. The result depends only on a key and on the
// position, so a backward pass can compute the same multipliers again without a
// stored mask. Source of splitmix64: G. Steele, D. Lea, C. Flood, "Fast
// splittable pseudorandom number generators" (2014). Device code includes this
// header.
#ifndef TF_LSTM_OPS_CORE_DROPOUT_RULE_H_
#define TF_LSTM_OPS_CORE_DROPOUT_RULE_H_

#include <cstdint>

#include "core/macros.h"

namespace tf_lstm_ops {

// Returns output number `n`, from 0 on, of the generator that starts at `key`.
TF_LSTM_OPS_INLINE uint64_t SplitMix64(uint64_t key, uint64_t n) {
  uint64_t z = key + (n + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct DropoutRule {
  uint64_t key;
  uint64_t threshold;  // 2^32 times the probability of dropping
  double scale;        // multiplier of an output that is not dropped

  // Whether the element at this position is dropped.
  TF_LSTM_OPS_INLINE bool Drops(uint64_t position) const {
    return SplitMix64(key, position) >> 32 < threshold;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_DROPOUT_RULE_H_
