// The ops of the MPSGraph dialect: the LSTM of Apple's MPSGraph and its
// gradients, with MPSGraph's layouts and options.
#ifndef TF_LSTM_OPS_DIALECTS_MPSGRAPH_SIGNATURES_H_
#define TF_LSTM_OPS_DIALECTS_MPSGRAPH_SIGNATURES_H_

#include "core/signature.h"

namespace tf_lstm_ops::mpsgraph {

// D directions; gates in the order i, f, z, o, or i, z, f, o with
// forget_gate_last. Inputs, the last six optional:
//   source [T,N,I], or [T,N,D*4H] without input_weight; recurrent_weight
//   [4H,H], or [2,4H,H]; input_weight [D*4H,I]; bias [D*4H]; init_state and
//   init_cell [N,D*H]; mask, multipliers of h[t-1] that broadcast to [N,D*H];
//   peephole [4H], or [2,4H].
// Outputs:
//   output and cell, h and c of all steps, [T,N,D*H]; z_state, the gates after
//   their activations, [T,N,D*4H]. Outputs that are not requested are [0].
const Signature& MPSGraphLSTM();

// Inputs: those of MPSGraphLSTM and its outputs cell and z_state, the gradient
// of its output, and, optional, those of the final step's h and c,
// [N,D*H] or [1,N,D*H], and those of cell and z_state at all steps.
// Outputs: gradients of all inputs but the mask; [0] of those absent.
const Signature& MPSGraphLSTMGradients();

}  // namespace tf_lstm_ops::mpsgraph

#endif  // TF_LSTM_OPS_DIALECTS_MPSGRAPH_SIGNATURES_H_
