// The size of thread blocks, for device code and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_H_

namespace tf_lstm_ops::cuda {

// Threads of a block, unless a launch says otherwise.
constexpr int kBlock = 256;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_H_
