// The parameters of the kernels in keras.cu.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERAS_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERAS_ARGUMENTS_H_

#include <cstdint>

#include "core/sequence.h"

namespace tf_lstm_ops::cuda {

// From the gradients of the op's output those of each step's h, [B,T,H]: that
// of a masked step's output belongs to the step that it repeats, or to none.
template <class T>
struct StepGradients {
  Steps steps;
  int64_t cell = 0;
  bool last_only = false;  // the output is that of the last step, [B,1,H]
  bool masked_is_zero = false;
  const T* output_grad = nullptr;
  T* h_grad = nullptr;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_KERAS_ARGUMENTS_H_
