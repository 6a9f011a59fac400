// MPSGraph's LSTM and its gradients, by the equations and layouts of Apple's
// header MPSGraphRNNOps.h.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include "graph.h"

namespace fake {

// The order of the arguments. Null where an argument is nil.
enum LstmArgument {
  kSource,           // [T, N, I], without input weight [T, N, 4H]
  kRecurrentWeight,  // [4H, H]
  kInputWeight,      // [4H, I]
  kBias,             // [4H]
  kInitState,        // [N, H]
  kInitCell,         // [N, H]
  kMask,             // broadcasts to [N, H]
  kPeephole,         // [4H]
  // Results of the forward pass and gradients with respect to them.
  kSourceGradient,  // [T, N, H]
  kZState,          // [T, N, 4H]
  kCellOutputFwd,   // [T, N, H]
  kStateGradient,   // [1, N, H]
  kCellGradient,    // [1, N, H]
};

// Returns the output; the cell if produceCell; zState if training.
Tensors Lstm(Graph* graph, const Tensors& arguments, MPSGraphLSTMDescriptor* descriptor);
// Returns the gradients with respect to source, recurrentWeight, inputWeight,
// bias, peephole, initState and initCell. Skips those that are nil.
Tensors LstmGradients(Graph* graph, const Tensors& arguments, MPSGraphLSTMDescriptor* descriptor);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_H_
