// The text of the device code, which is embedded in the library.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SOURCES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SOURCES_H_

#include <vector>

namespace tf_lstm_ops::cuda {

struct Source {
  const char* name;  // the path in #include
  const char* text;
};

// All files of the device code. The texts are constants of the library.
const std::vector<Source>& Sources();

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_SOURCES_H_
