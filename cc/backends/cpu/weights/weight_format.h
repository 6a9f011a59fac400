// WeightFormat: how packed weights are stored.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_

namespace tf_lstm_ops::cpu {

// Each format has a case in the packing (PackVectors) and in the choice of the
// product kernel (MultiplyRows).
enum class WeightFormat {
  kElements,       // of the type in which the engine computes
  kBFloat16Pairs,  // BFloat16Pair, two rows of the weights in a word
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_WEIGHT_FORMAT_H_
