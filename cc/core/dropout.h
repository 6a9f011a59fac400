// DropoutMask: the dropout multipliers of the layer outputs of a multi-layer
// RNN. DropoutKeys: the keys that determine them.
#ifndef TF_LSTM_OPS_CORE_DROPOUT_H_
#define TF_LSTM_OPS_CORE_DROPOUT_H_

#include <strings.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/dropout_rule.h"

namespace tf_lstm_ops {

class DropoutMask {
 public:
  // Returns the key of call number `call`, from 0 on, with this seed.
  static uint64_t Key(uint64_t seed, uint64_t call) {
    return SplitMix64(SplitMix64(seed, 0), call);
  }

  // The mask of outputs [rows, width] of each layer. `probability`, from 0 to
  // 1, is the probability that an element becomes zero.
  DropoutMask(uint64_t key, float probability, int64_t rows, int64_t width)
      : rule_{key,
              static_cast<uint64_t>(
                  std::ldexp(static_cast<double>(probability), 32)),
              probability < 1 ? 1 / (1 - static_cast<double>(probability)) : 0},
        rows_(rows),
        width_(width) {}

  const DropoutRule& rule() const { return rule_; }
  // Multiplier of an element that is not dropped.
  double scale() const { return rule_.scale; }
  // The position of a row's first element in the generator's sequence.
  uint64_t Position(int64_t layer, int64_t row) const {
    return static_cast<uint64_t>((layer * rows_ + row) * width_);
  }

  // Multiplies a row [width] of a layer's outputs: to[k] = from[k] * multiplier
  // k of the row. `to` may be the same memory as `from`.
  template <class T>
  void Apply(int64_t layer, int64_t row, const T* from, T* to) const {
    const uint64_t start = Position(layer, row);
    const T scale = static_cast<T>(rule_.scale);
    for (int64_t k = 0; k < width_; ++k) {
      const bool drops = rule_.Drops(start + static_cast<uint64_t>(k));
      to[k] = drops ? T(0) : from[k] * scale;
    }
  }

 private:
  DropoutRule rule_;
  int64_t rows_, width_;
};

// The keys of a kernel's successive calls.
class DropoutKeys {
 public:
  // Returns the key of the next call. Thread-safe.
  uint64_t Next(uint64_t seed) {
    return DropoutMask::Key(
        seed, resets_ ? 0 : calls_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  // Whether every call uses the first key. The environment variable below,
  // which TensorFlow defines for cuDNN, sets this.
  static bool Resets() {
    const char* text = std::getenv("TF_CUDNN_RESET_RND_GEN_STATE");
    return text != nullptr &&
           (std::strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0);
  }

  const bool resets_ = Resets();
  std::atomic<uint64_t> calls_{0};
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_DROPOUT_H_
