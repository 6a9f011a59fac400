// VectorTraits: what a plan reads of an instruction set.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_VECTOR_TRAITS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_VECTOR_TRAITS_H_

#include <cstdint>

#include "backends/cpu/weights/weight_format.h"

namespace tf_lstm_ops::cpu {

// What a plan reads of an instruction set and the type in which it computes.
struct VectorTraits {
  int64_t lanes = 1;  // elements of a vector
  int64_t element_bytes = sizeof(float);
  // Whether products of bfloat16 layers multiply pairs of bfloat16. Otherwise
  // they multiply widened elements.
  bool dots_pairs = false;
  bool has_tiles = false;  // of which those products are
  // Whether widening pairs leaves enough registers for the sums of a tile.
  bool has_many_registers = false;
  // Multiply-adds of pairs in the time of one of elements.
  double pairs_speed = 1;
};

// Multiply-adds of a format in the time of one of elements.
inline double SpeedOf(WeightFormat format, const VectorTraits& traits) {
  return format == WeightFormat::kBFloat16Pairs ? traits.pairs_speed
                                                : QuadsSpeed(format);
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_VECTOR_TRAITS_H_
