// MPSGraph's LSTM and its gradients, by the equations and layouts of Apple's
// header MPSGraphRNNOps.h.
#ifndef TF_LSTM_OPS_TESTS_METAL_STAND_IN_LSTM_H_
#define TF_LSTM_OPS_TESTS_METAL_STAND_IN_LSTM_H_

#include "graph.h"

namespace stand_in {

// The values of MPSGraphRNNActivation.
enum class Activation { kNone, kRelu, kTanh, kSigmoid, kHardSigmoid };

struct LstmDescriptor {
  bool reverse, bidirectional, produce_cell, training, forget_gate_last;
  Activation input_gate, forget_gate, cell_gate, output_gate, activation;
};

// Null where an argument is nil.
struct LstmArguments {
  Tensor* source;            // [T,N,I], without input_weight [T,N,D·4H]
  Tensor* recurrent_weight;  // [4H,H], [2,4H,H]
  Tensor* input_weight;      // [D·4H,I]
  Tensor* bias;              // [D·4H]
  Tensor* init_state;        // [N,D·H]
  Tensor* init_cell;         // [N,D·H]
  Tensor* mask;              // what broadcasts to [N,D·H]
  Tensor* peephole;          // [4H], [2,4H]
};

struct LstmUpstream {
  Tensor* source_gradient;  // of the output: [T,N,D·H]
  Tensor* z_state;          // [T,N,D·4H]
  Tensor* cell_output_fwd;  // [T,N,D·H]
  Tensor* state_gradient;   // of the final state: [1,N,D·H]
  Tensor* cell_gradient;    // [1,N,D·H]
};

// Output, cell where it is produced, zState in training.
Tensors Lstm(Graph* graph, const LstmArguments& arguments,
             const LstmDescriptor& descriptor);
// Of source, recurrentWeight, inputWeight, bias, peephole, initState and
// initCell, but for those that are nil.
Tensors LstmGradients(Graph* graph, const LstmArguments& arguments,
                      const LstmUpstream& upstream,
                      const LstmDescriptor& descriptor);

}  // namespace stand_in

#endif  // TF_LSTM_OPS_TESTS_METAL_STAND_IN_LSTM_H_
