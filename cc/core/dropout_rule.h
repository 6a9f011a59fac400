// DropoutRule: which outputs of a layer are dropped before the next layer.
//
// A multiplier is a function of a key and of its element's position. So the
// backward pass draws the same multipliers again and nothing is stored. Each
// one is drawn from the upper half of splitmix64 (G. Steele, D. Lea, C. Flood,
// "Fast splittable pseudorandom number generators", 2014) at its position.
// Device code includes this header.
#ifndef TF_LSTM_OPS_CORE_DROPOUT_RULE_H_
#define TF_LSTM_OPS_CORE_DROPOUT_RULE_H_

#include <cstdint>

#include "core/macros.h"

namespace tf_lstm_ops {

// The n-th output of the generator that starts at `key`.
TF_LSTM_OPS_INLINE uint64_t SplitMix64(uint64_t key, uint64_t n) {
  uint64_t z = key + (n + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct DropoutRule {
  uint64_t key;
  uint64_t threshold;  // of 2^32
  double scale;        // multiplier of an output that is not dropped

  TF_LSTM_OPS_INLINE bool Drops(uint64_t position) const {
    return SplitMix64(key, position) >> 32 < threshold;
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_DROPOUT_RULE_H_
