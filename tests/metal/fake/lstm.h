// MPSGraph's LSTM and its gradients, by the equations and layouts of Apple's
// header MPSGraphRNNOps.h.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_

#include "graph.h"

namespace fake {

// The values of MPSGraphRNNActivation.
enum class Activation { kNone, kRelu, kTanh, kSigmoid, kHardSigmoid };

struct LstmDescriptor {
  bool reverse, bidirectional, produce_cell, training, forget_gate_last;
  Activation input_gate, forget_gate, cell_gate, output_gate, activation;
};

// Null where an argument is nil.
struct LstmArguments {
  Tensor* source;            // [T, N, I], without input_weight [T, N, D*4H]
  Tensor* recurrent_weight;  // [4H, H] or [2, 4H, H]
  Tensor* input_weight;      // [D*4H, I]
  Tensor* bias;              // [D*4H]
  Tensor* init_state;        // [N, D*H]
  Tensor* init_cell;         // [N, D*H]
  Tensor* mask;              // broadcasts to [N, D*H]
  Tensor* peephole;          // [4H] or [2, 4H]
};

// Results of the forward pass and gradients with respect to them.
struct LstmOutputGrads {
  Tensor* source_gradient;  // [T, N, D*H]
  Tensor* z_state;          // [T, N, D*4H]
  Tensor* cell_output_fwd;  // [T, N, D*H]
  Tensor* state_gradient;   // [1, N, D*H]
  Tensor* cell_gradient;    // [1, N, D*H]
};

// Returns the output; the cell if produce_cell; zState if training.
Tensors Lstm(Graph* graph, const LstmArguments& arguments,
             const LstmDescriptor& descriptor);
// Returns the gradients with respect to source, recurrentWeight, inputWeight,
// bias, peephole, initState and initCell. Skips those that are nil.
Tensors LstmGradients(Graph* graph, const LstmArguments& arguments,
                      const LstmOutputGrads& output_grads,
                      const LstmDescriptor& descriptor);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_
