// The kernel of CudnnRNNDropoutMask, which computes a call's dropout
// multipliers again.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_

namespace tf_lstm_ops::cudnn_rnn {

// Registers the kernel for type T. It uses host memory on every device.
// reserve_space must begin with a ReserveHeader.
template <class T>
void RegisterDropoutMask(const char* device);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_
