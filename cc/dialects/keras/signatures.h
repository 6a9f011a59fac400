// The ops behind tf_lstm_ops.keras: an LSTM or GRU layer over a batch of
// sequences, with Keras' masks, dropout and options.
#ifndef TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_
#define TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_

#include <string>

#include "core/signature.h"

namespace tf_lstm_ops::keras {

// An LSTM layer. The gates of the weights are in Keras' order i, f, c, o. P is
// the size of h: the number of columns of the projection, or H where it is
// absent.
// Inputs:
//   x [B,T,I]; mask [B,T]; initial_h [B,P]; initial_c [B,H]; kernel [I,4H];
//   recurrent_kernel [P,4H]; bias [4H]; peephole [3,H], rows i, f, o;
//   projection [H,P], P < H: h = (o * g(c)) projection;
//   input_dropout [4,B,I] and recurrent_dropout [4,B,P], each gate's
//   multipliers of x and of the previous h.
// Attributes: `activation` g of the candidate and the cell state,
// `recurrent_activation` of the gates; see core/activation.h. `proj_clip` clips
// the projected h to [-proj_clip, proj_clip] where it is positive. The kernels
// for CUDA have the default ones only, and no projection.
//
// Outputs:
//   output [B,T,P] with return_sequences, else the last step's, [B,1,P];
//   final_h [B,P]; final_c [B,H]; reserve [.], which the gradient op reads (see
//   ReserveLayout in problem.h), empty unless `training`.
const Signature& KerasLSTM();

// Inputs: the inputs of KerasLSTM, its output and reserve, and the gradients of
// its first three outputs. Outputs: the gradients of all inputs except the mask
// and the multipliers. Without the attribute `needs_x_grad`, the kernels for
// the CPU save the time of x_grad and return zeros.
const Signature& KerasLSTMGrad();

// A layer-normalised LSTM layer; see core/layer_norm_cell.h. Only the CPU has
// kernels. The inputs are those of KerasLSTM without peephole, and behind bias:
//   input_gamma, recurrent_gamma [4H], scales of the normalised products;
//   state_gamma, state_beta [H], scale and offset of the normalised cell state.
// Attributes: `epsilon`, positive; `carries_normalized_state`: whether the next
// step reads the normalised cell state.
const Signature& KerasLayerNormLSTM();
const Signature& KerasLayerNormLSTMGrad();

// A GRU layer with reset_after=True. The gates are in Keras' order z, r, h.
// Inputs and outputs are those of KerasLSTM without initial_c, peephole and
// final_c. These inputs have other shapes:
//   kernel [I,3H]; recurrent_kernel [H,3H]; bias [2,3H], rows of the input and
//   of the recurrent product; input_dropout [3,B,I]; recurrent_dropout [3,B,H].
// The update h = z * h_prev + (1 - z) * n uses h_prev without dropout.
// Attributes: `activation` of the candidate n, `recurrent_activation` of the
// gates. No GRU has kernels for CUDA: TensorFlow's op for cuDNN computes the
// one with the default activations.
const Signature& KerasGRU();
const Signature& KerasGRUGrad();

// A GRU layer with reset_after=False; see ResetBeforeGruCell in
// core/gru_cell.h. The inputs are those of KerasGRU, except for bias [3H]. Only
// the CPU has kernels.
const Signature& KerasResetBeforeGRU();
const Signature& KerasResetBeforeGRUGrad();

// A layer-normalised GRU layer. The inputs are those of KerasGRU, and behind
// bias: input_gamma, recurrent_gamma [3H]. Attribute: `epsilon`, positive. Only
// the CPU has kernels.
const Signature& KerasLayerNormGRU();
const Signature& KerasLayerNormGRUGrad();

// A plain RNN layer, h = activation(x kernel + h recurrent_kernel + bias); see
// core/vanilla_rnn_cell.h. Inputs and outputs are those of KerasGRU with these
// shapes:
//   kernel [I,H]; recurrent_kernel [H,H]; bias [H]; input_dropout [1,B,I];
//   recurrent_dropout [1,B,H].
// Attribute: `activation`, tanh or relu. Only the CPU has kernels.
const Signature& KerasSimpleRNN();
const Signature& KerasSimpleRNNGrad();

// The name of an input or output of the layer that reads backwards: the prefix,
// then `name`, that of the other layer.
constexpr const char* kBackwardPrefix = "backward_";
std::string BackwardName(const std::string& name);

// Two layers of one kind with the same sizes and attributes, by the signatures
// of the layer's op. The first layer reads forwards, the second one backwards.
// The ops' names have Bidirectional behind Keras. Only the CPU has kernels.
// Inputs: all inputs of the layer's op, then those of the second layer without
//   the mask. The latter have the prefix backward_ (BackwardName). If
//   backward_x is absent, both layers read x.
// Attributes: those of the layer's op without go_backwards.
// Outputs: output [B,T,2P]: each step has h of the first layer, then h of the
//   second one. Without return_sequences it is [B,1,2P], the last computed h of
//   each layer. Then the final states of the first layer, those of the second
//   one, and reserve: the first layer's part, then the second one's.
Signature MakeBidirectional(const Signature& layer);
// Inputs: those of MakeBidirectional(layer), its output and reserve, and the
// gradients of all its outputs except reserve. Outputs: those of `grad` for the
// first layer, then those for the second one with the prefix backward_. If
// backward_x is absent, backward_x_grad is empty, and x_grad has the sum.
Signature MakeBidirectionalGrad(const Signature& layer, const Signature& grad);

template <const Signature& (*kLayer)()>
const Signature& Bidirectional() {
  static const Signature signature = MakeBidirectional(kLayer());
  return signature;
}
template <const Signature& (*kLayer)(), const Signature& (*kGrad)()>
const Signature& BidirectionalGrad() {
  static const Signature signature = MakeBidirectionalGrad(kLayer(), kGrad());
  return signature;
}

}  // namespace tf_lstm_ops::keras

#endif  // TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_
