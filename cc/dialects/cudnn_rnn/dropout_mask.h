// The op CudnnRNNDropoutMask, which draws a call's multipliers again.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_

namespace tf_lstm_ops::cudnn_rnn {

// Registers its kernel for type T. It works in the host's memory on any device
// whose reserve_space begins with a ReserveHeader.
template <class T>
void RegisterDropoutMask(const char* device);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_DROPOUT_MASK_H_
