// What Apple's classes of MPSGraph hold (their _impl), and conversions between them and Graph.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_MPSGRAPH_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_MPSGRAPH_H_

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <mutex>
#include <vector>

#include "graph.h"
#include "metal.h"

namespace fake {

// Of an MPSGraphTensorData. Owns a reference to the buffer.
struct TensorData {
  FakeBuffer* buffer;
  Shape shape;
  Type type;
};

// Of an MPSGraph. Owns references to the tensors.
struct GraphAndTensors {
  Graph graph;
  std::vector<MPSGraphTensor*> tensors;
  std::mutex encoding;
};

// Raises where the shape is nil.
Shape ToShape(MPSShape* sizes);
MPSShape* FromShape(const Shape& shape);

// What an object holds. Null where the tensor is nil.
Tensor* Of(MPSGraphTensor* tensor);
Tensors Of(NSArray<MPSGraphTensor*>* tensors);
TensorData* Of(MPSGraphTensorData* data);
GraphAndTensors* Of(MPSGraph* graph);

// MPSGraph's LSTM and its gradients, by the equations and layouts of Apple's header
// MPSGraphRNNOps.h.
//
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
// Returns the gradients with respect to source, recurrentWeight, inputWeight, bias, peephole,
// initState and initCell. Skips those that are nil.
Tensors LstmGradients(Graph* graph, const Tensors& arguments, MPSGraphLSTMDescriptor* descriptor);

// Encodes a graph with these feeds and results, as MPSGraph's method does.
void Encode(MPSGraph* graph, MPSCommandBuffer* commands, MPSGraphTensorDataDictionary* feeds,
            MPSGraphTensorDataDictionary* results);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_MPSGRAPH_H_
