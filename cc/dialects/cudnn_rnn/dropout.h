// DropoutMask: which outputs of a layer the next layer does not see; and the
// keys that masks are drawn with.
//
// A multiplier is a function of a key and of its element's position, so that
// the backward pass draws the same ones again and nothing is stored. Each is
// drawn from the upper half of splitmix64 (G. Steele, D. Lea, C. Flood, "Fast
// splittable pseudorandom number generators", 2014) at its position.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_H_

#include <strings.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tf_lstm_ops::cudnn_rnn {

// The n-th number of the generator that starts at `key`.
inline uint64_t SplitMix64(uint64_t key, uint64_t n) {
  uint64_t z = key + (n + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class DropoutMask {
 public:
  // The key of the n-th call with a seed.
  static uint64_t Key(uint64_t seed, uint64_t call) {
    return SplitMix64(SplitMix64(seed, 0), call);
  }

  // For outputs [rows, width] of each layer, dropped with this probability.
  DropoutMask(uint64_t key, float probability, int64_t rows, int64_t width)
      : key_(key),
        threshold_(static_cast<uint64_t>(
            std::ldexp(static_cast<double>(probability), 32))),
        scale_(probability < 1 ? 1 / (1 - static_cast<double>(probability))
                               : 0),
        rows_(rows),
        width_(width) {}

  double scale() const { return scale_; }  // of what is not dropped

  // to[k] = from[k] * multiplier of element k of a row, for all of a row.
  template <class T>
  void Apply(int64_t layer, int64_t row, const T* from, T* to) const {
    const auto start = static_cast<uint64_t>((layer * rows_ + row) * width_);
    const T scale = static_cast<T>(scale_);
    for (int64_t k = 0; k < width_; ++k) {
      const uint64_t draw =
          SplitMix64(key_, start + static_cast<uint64_t>(k)) >> 32;
      to[k] = draw < threshold_ ? T(0) : from[k] * scale;
    }
  }

 private:
  uint64_t key_;
  uint64_t threshold_;  // of 2^32
  double scale_;
  int64_t rows_, width_;
};

// The keys of a kernel's calls, one after the other.
class DropoutKeys {
 public:
  uint64_t Next(uint64_t seed) {
    return DropoutMask::Key(
        seed, resets_ ? 0 : calls_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  // Whether every call is to begin anew, by TensorFlow's variable for cuDNN.
  static bool Resets() {
    const char* text = std::getenv("TF_CUDNN_RESET_RND_GEN_STATE");
    return text != nullptr &&
           (std::strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0);
  }

  const bool resets_ = Resets();
  std::atomic<uint64_t> calls_{0};
};

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_H_
