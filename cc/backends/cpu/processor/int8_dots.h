// Whether the processor multiplies int8 by instructions for dot products.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_INT8_DOTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_INT8_DOTS_H_

namespace tf_lstm_ops::cpu {

// Whether it has them for vectors of so many bytes: AVX512_VNNI with 64,
// AVX_VNNI with 32, Armv8.2's dot products. Products without them have the same
// results.
bool HasInt8Dots(int vector_bytes);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_INT8_DOTS_H_
