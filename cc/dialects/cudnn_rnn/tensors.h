// What a call of this dialect hands to a backend, and gets from it.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_TENSORS_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_TENSORS_H_

namespace tf_lstm_ops::cudnn_rnn {

// Tensors of a call, with the shapes that the op has. What `reserve` is, each
// backend says itself.
template <class C>
struct ForwardTensors {
  const C *input, *input_h, *input_c, *params;
  C *output, *output_h, *output_c;
  C *reserve;  // null: nothing is kept
};

template <class C>
struct BackwardTensors {
  const C *input, *input_h, *input_c, *params;
  const C *output, *reserve;
  const C *output_backprop, *output_h_backprop, *output_c_backprop;
  C *input_backprop, *input_h_backprop, *input_c_backprop, *params_backprop;
};

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_TENSORS_H_
