// WeightFormat: how packed weights are stored. Each format has a case in the
// packing (pack.h) and in the choice of the product kernel (MultiplyRows).
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_FORMAT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_FORMAT_H_

#include "backends/cpu/simd/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

enum class WeightFormat {
  kElements,       // of the type in which the engine computes
  kBFloat16Pairs,  // BFloat16Pair, two rows of the weights in a word
};

// The number of words that store `elements` elements. A word has the size of an
// element in which the engine computes.
constexpr int64_t Words(int64_t elements, WeightFormat format) {
  return format == WeightFormat::kBFloat16Pairs ? (elements + 1) / 2 : elements;
}

constexpr WeightFormat FormatOf(bool bfloat16) {
  return bfloat16 ? WeightFormat::kBFloat16Pairs : WeightFormat::kElements;
}

// Whether the matrix that is multiplied with the weights, such as x, is rounded
// to the same format. Otherwise the weights are converted to float.
constexpr bool RoundsFactors(WeightFormat format) {
  return kDotsPairs && format == WeightFormat::kBFloat16Pairs;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_FORMAT_H_
