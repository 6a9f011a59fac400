// The instructions mma.sync m16n8k16 of 16-bit types and m16n8k8 of TF32, and
// the conversion to TF32. Source of the fragment layouts: the PTX ISA.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_TENSOR_CORE_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_TENSOR_CORE_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/float16.h"
#include "fibers.h"

namespace fake {

// With FAKE_FLOAT=1 TF32 has all bits of a float, so that tests can compare
// with more than ten bits.
inline bool HasAllBits() {
  static const bool has = std::getenv("FAKE_FLOAT") != nullptr;
  return has;
}

// cvt.rna.tf32.f32 rounds to nearest, ties away from zero.
inline uint32_t ToTf32(float value) {
  const uint32_t word = tf_lstm_ops::FloatBits(value);
  if (HasAllBits()) return word;
  const bool is_finite = (word & 0x7f800000u) != 0x7f800000u;
  return is_finite ? (word + 0x1000u) & 0xffffe000u : word;
}

class Mma {
 public:
  explicit Mma(const char* kind) {
    const char* const kinds[] = {"m16n8k16.row.col.f32.f16.f16.f32",
                                 "m16n8k16.row.col.f32.bf16.bf16.f32",
                                 "m16n8k8.row.col.f32.tf32.tf32.f32"};
    for (const char* known : kinds) {
      if (std::strcmp(kind, known) == 0) return;
      ++kind_;
    }
    std::abort();
  }

  void Multiply(const uint32_t (&a)[4], const uint32_t (&b)[2],
                float (&c)[4]) const {
    const Fragments& all = Grid::Current().Exchange(a, b);
    const unsigned lane = threadIdx.x % kWarp;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      double sum = c[i];
      for (unsigned k = 0; k < (IsTf32() ? 8 : 16); ++k) {
        sum += OfA(all, row, k) * OfB(all, column, k);
      }
      c[i] = static_cast<float>(sum);
    }
  }

 private:
  bool IsTf32() const { return kind_ == 2; }

  double OfA(const Fragments& all, unsigned row, unsigned k) const {
    const unsigned lane = row % 8 * 4 + LaneOf(k);
    return Element(all.a[lane][row / 8 + 2 * RegisterOf(k)], k);
  }
  double OfB(const Fragments& all, unsigned column, unsigned k) const {
    return Element(all.b[column * 4 + LaneOf(k)][RegisterOf(k)], k);
  }
  unsigned LaneOf(unsigned k) const { return IsTf32() ? k % 4 : k % 8 / 2; }
  unsigned RegisterOf(unsigned k) const { return IsTf32() ? k / 4 : k / 8; }

  double Element(uint32_t word, unsigned k) const {
    using tf_lstm_ops::BFloat16;
    using tf_lstm_ops::Half;
    // The lowest 13 bits of a float are ignored.
    if (IsTf32()) {
      const uint32_t mask = HasAllBits() ? 0xffffffffu : 0xffffe000u;
      return tf_lstm_ops::FloatFromBits(word & mask);
    }
    const auto bits = static_cast<uint16_t>(word >> (k % 2 * 16));
    return kind_ == 0 ? Half{bits}.ToFloat() : BFloat16{bits}.ToFloat();
  }

  int kind_ = 0;
};

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_TENSOR_CORE_H_
