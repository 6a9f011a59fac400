// What Apple's classes of MPSGraph hold (their _impl), and conversions between
// them and Graph.
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

// Encodes a graph with these feeds and results, as MPSGraph's method does.
void Encode(MPSGraph* graph, MPSCommandBuffer* commands, MPSGraphTensorDataDictionary* feeds,
            MPSGraphTensorDataDictionary* results);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_MPSGRAPH_H_
