// The LSTM layers of a CudnnRNN op as a graph: the layers one after the other, the directions of a
// layer beside each other, each as MPSGraph's own LSTM.
//
// Shapes: L layers, D directions, T steps, B rows of the batch, I input size, H units. Sequences
// are [T, B, .], or [B, T, .] if batch-major; states are [L*D, B, H] or [B, L*D, H].
//
// Lengths are arguments of the graph, so other lengths need no other graph, and no loop. The valid
// steps of a row come first; a backward direction reverses only these. In a step of the padding the
// input gate is 0, the forget gate 1: MPSGraph's LSTM then keeps the cell state. It does not keep
// h, which is taken from the row's last valid step.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_LSTM_STACK_H_
#define TF_LSTM_OPS_BACKENDS_METAL_LSTM_STACK_H_

#include "backends/metal/value.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::metal {

// What depends on the lengths. The defaults are those of full lengths.
struct Padding {
  Value valid = 1;  // [T, B, 1], positive in the first `length` steps
  Value last = 0;   // [T, B, 1], 1 in the last valid step, else 0
  // [T*B], Int32: the row of [T*B, .] that a backward direction has in a row's place. Its own
  // inverse.
  Value reversal = 0;
};

// What both passes read. The lengths of `rnn` are not read.
struct LstmStack {
  MPSGraph* graph = nil;  // not owned
  const MultiLayerRnn& rnn;
  Value input, input_h, input_c, params;
  Padding padding;
  // [L-1, T, B, D*H], positive where the next layer reads an output, or 1.
  Value dropout_mask = 1;
  float dropout = 0;  // the probability of the mask's zeros
};

// Results, or the gradients with respect to them.
struct LstmStackResults {
  Value output, output_h, output_c;
};

struct LstmStackGrads {
  Value input, input_h, input_c, params;
};

LstmStackResults BuildForward(const LstmStack& stack);

// Computes the forward pass again: MPSGraph's saved state stays in the graph.
LstmStackGrads BuildBackward(const LstmStack& stack, const LstmStackResults& result_grads);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_LSTM_STACK_H_
