// WeightFormat: how packed weights are stored.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_

#include <cstdint>

namespace tf_lstm_ops::cpu {

// Each format has a case in the packing (PackVectors) and in the choice of the
// product kernel (MultiplyRows).
enum class WeightFormat {
  kElements,       // of the type in which the engine computes
  kBFloat16Pairs,  // BFloat16Pair, two rows of the weights in a word
  // Four rows of int8 in a word; see simd/vector/quads.h. The second one is for
  // processors with instructions for dot products.
  kInt8Quads,
  kInt8FusedQuads,
};

// Multiply-adds of int8 in the time of one of float; 1 with other formats. One
// instruction has four of them, or two instructions have two.
// benchmarks/NOTES.md, "int8 and bfloat16 in sessions".
constexpr double QuadsSpeed(WeightFormat format) {
  return format == WeightFormat::kInt8FusedQuads ? 4
         : format == WeightFormat::kInt8Quads    ? 1.5
                                                 : 1;
}

constexpr bool IsInt8(WeightFormat format) {
  return format == WeightFormat::kInt8Quads ||
         format == WeightFormat::kInt8FusedQuads;
}

// Elements that hold a row of `width` elements as any instruction set rounds
// it: to quads, which are its scale, and whole vectors of at most 16 integers
// of 16 bits, or to pairs, at most blocks of 16.
constexpr int64_t MostFactorFloats(int64_t width) {
  const int64_t quads = 1 + (width + 15) / 16 * 8;
  const int64_t pairs = (width + 31) / 32 * 16;
  return quads > pairs ? quads : pairs;
}

// The most rows of int8 weights: so many products of two bytes, one of them
// below 2^8, have a sum below 2^31.
constexpr int64_t kMostInt8Rows = 65536;

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_
