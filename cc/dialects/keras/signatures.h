// The ops behind tf_lstm_ops.keras: a whole layer over a batch of sequences,
// with everything that Keras' layers do to it.
#ifndef TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_
#define TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_

#include "core/signature.h"

namespace tf_lstm_ops::keras {

// Inputs, gates of the weights in Keras' order i, f, c, o:
//   x [B,T,I]; mask [B,T]; initial_h, initial_c [B,H]; kernel [I,4H];
//   recurrent_kernel [H,4H]; bias [4H]; peephole [3,H], rows i, f, o;
//   input_dropout [4,B,I] and recurrent_dropout [4,B,H], multipliers of x and
//   of the previous h as each gate sees them.
// Outputs:
//   output [B,T,H] with return_sequences, else the last step's, [B,1,H];
//   final_h, final_c [B,H]; reserve, what the gradient needs (see kernels.cc),
//   empty unless `training`.
const Signature& KerasLSTM();

// Inputs: those of KerasLSTM, its output and reserve, and the gradients of its
// first three outputs. Outputs: gradients of all inputs but the masks.
const Signature& KerasLSTMGrad();

// As KerasLSTM, for a GRU with reset_after=True; gates in Keras' order z, r, h.
//   x, mask, initial_h; kernel [I,3H]; recurrent_kernel [H,3H]; bias [2,3H],
//   of the input and of the recurrent product; input_dropout [3,B,I];
//   recurrent_dropout [3,B,H], which the update h = z * h_prev + (1 - z) * n
//   does not see.
const Signature& KerasGRU();
const Signature& KerasGRUGrad();

}  // namespace tf_lstm_ops::keras

#endif  // TF_LSTM_OPS_DIALECTS_KERAS_SIGNATURES_H_
