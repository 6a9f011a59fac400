// A product with weights that are packed once: y = x W + bias.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PRODUCT_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/vector/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

inline int64_t PackProduct(const GateMatrices<const float>& weights,
                           WeightFormat format, int64_t depth, int64_t columns,
                           float* packed) {
  const int64_t words = Words(depth, format);
  for (int64_t n = 0; packed && n < columns; n += kProductColumns<float>) {
    const int64_t end = Min(n + kProductColumns<float>, columns);
    if (IsQuads(format)) {
      PackQuads(weights.int8 + n, weights.scales + n, weights.row_stride, depth,
                end - n,
                {packed + n * words, RoundUpToLanes<float>(end - n),
                 kLanes<float>, format});
      continue;
    }
    weights.Read(0, [&](const auto* data) {
      PackGroup(PackedFrom{data, weights.row_stride, 1, depth, columns}, n, end,
                packed + n * words, format);
    });
  }
  return RoundUpToLanes<float>(columns) * words;
}

inline void RunProduct(const PackedProduct& product, const float* const* x,
                       int64_t rows, float* y, int64_t y_stride,
                       float* rounded) {
  const WeightFormat format = product.format;
  const int64_t depth = product.depth, columns = product.columns;
  const int64_t words = Words(depth, format),
                factor = FactorWords(depth, format);
  const bool rounds = RoundsFactors(format);
  for (int64_t r = 0; rounds && r < rows; ++r) {
    RoundFactor(x[r], depth, format, rounded + r * factor);
  }
  for (int64_t n = 0; n < columns; n += kProductColumns<float>) {
    const int64_t width = Min(columns - n, kProductColumns<float>);
    WithConstant<kColumns>(CeilDiv(width, kLanes<float>), [&](auto vectors) {
      MultiplyBand<decltype(vectors)::value>(
          [&](int64_t r) -> const float* {
            return rounds ? rounded + r * factor : x[r];
          },
          WeightColumns<float>{product.packed + n * words, depth, format},
          ProductRange{0, rows, width},
          [&](int64_t r) { return y + r * y_stride + n; });
    });
  }
  for (int64_t r = 0; product.bias && r < rows; ++r, y += y_stride) {
    for (int64_t n = 0; n < columns; n += kLanes<float>) {
      const int64_t width = columns - n;
      StoreN(LoadN(y + n, width) + LoadN(product.bias + n, width), y + n,
             width);
    }
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PRODUCT_H_
