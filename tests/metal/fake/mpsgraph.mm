// MPSGraph: the methods that build a graph, over Graph.
#include "mpsgraph.h"

#include "counts.h"
#include "lstm.h"
#include "misuse.h"

using namespace fake;

namespace {

MPSGraphTensor* Wrap(MPSGraph* graph, Tensor* tensor) {
  MPSGraphTensor* wrapped = [[MPSGraphTensor alloc] init];
  wrapped->_impl = tensor;
  Of(graph)->tensors.push_back(wrapped);
  return wrapped;
}

// MPSGraph's headers promise no shapes of a loop's arguments and results.
NSArray* WithoutShapes(NSArray* tensors) {
  for (MPSGraphTensor* tensor in tensors) tensor->_hasNoShape = YES;
  return tensors;
}

NSArray* Wrap(MPSGraph* graph, const Tensors& tensors) {
  NSMutableArray* all = [NSMutableArray arrayWithCapacity:tensors.size()];
  for (Tensor* tensor : tensors) [all addObject:Wrap(graph, tensor)];
  return all;
}

fake::LstmDescriptor Of(MPSGraphLSTMDescriptor* d) {
  Require(d != nil, "LSTM: descriptor is nil");
  const auto activation = [](MPSGraphRNNActivation chosen) {
    Require(chosen <= MPSGraphRNNActivationHardSigmoid, "LSTM: activation ", chosen);
    return static_cast<fake::Activation>(chosen);
  };
  return {static_cast<bool>(d.reverse),        static_cast<bool>(d.bidirectional),
          static_cast<bool>(d.produceCell),    static_cast<bool>(d.training),
          static_cast<bool>(d.forgetGateLast), activation(d.inputGateActivation),
          activation(d.forgetGateActivation),  activation(d.cellGateActivation),
          activation(d.outputGateActivation),  activation(d.activation)};
}

}  // namespace

@implementation MPSGraph
- (instancetype)init {
  if ((self = [super init])) {
    _impl = new GraphAndTensors;
    ++counts.graphs;
  }
  return self;
}

- (void)dealloc {
  for (MPSGraphTensor* tensor : Of(self)->tensors) [tensor release];
  delete Of(self);
  --counts.graphs;
  [super dealloc];
}

- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor {
  Require(targetOperations == nil, "encode: targetOperations are not emulated");
  // Level 1, the default, may place operations on the Neural Engine or the CPU.
  Require(
      executionDescriptor.compilationDescriptor != nil &&
          executionDescriptor.compilationDescriptor.optimizationLevel == MPSGraphOptimizationLevel0,
      "encode: the optimisation level is not 0");
  Encode(self, commandBuffer, feeds, resultsDictionary);
}

// --- building a graph ------------------------------------------------------

- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType
                                   name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Placeholder(CheckedType(dataType), ToShape(shape)));
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType {
  return Wrap(self, Of(self)->graph.Constant(scalar, {1}, CheckedType(dataType)));
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar
                                shape:(MPSShape*)shape
                             dataType:(MPSDataType)dataType {
  return Wrap(self, Of(self)->graph.Constant(scalar, ToShape(shape), CheckedType(dataType)));
}

- (MPSGraphTensor*)identityWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Identity(Of(tensor)));
}

- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor
                       toType:(MPSDataType)type
                         name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Cast(Of(tensor), CheckedType(type)));
}

- (MPSGraphTensor*)sigmoidWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Sigmoid(Of(tensor)));
}

- (MPSGraphTensor*)tanhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Tanh(Of(tensor)));
}

- (MPSGraphTensor*)additionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Add(Of(primaryTensor), Of(secondaryTensor)));
}

- (MPSGraphTensor*)subtractionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Subtract(Of(primaryTensor), Of(secondaryTensor)));
}

- (MPSGraphTensor*)multiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                   secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                              name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Multiply(Of(primaryTensor), Of(secondaryTensor)));
}

- (MPSGraphTensor*)lessThanWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Less(Of(primaryTensor), Of(secondaryTensor)));
}

- (MPSGraphTensor*)selectWithPredicateTensor:(MPSGraphTensor*)predicateTensor
                         truePredicateTensor:(MPSGraphTensor*)truePredicateTensor
                        falsePredicateTensor:(MPSGraphTensor*)falseSelectTensor
                                        name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Select(Of(predicateTensor), Of(truePredicateTensor),
                                           Of(falseSelectTensor)));
}

- (MPSGraphTensor*)matrixMultiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                         secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                    name:(NSString*)name {
  return Wrap(self, Of(self)->graph.MatMul(Of(primaryTensor), Of(secondaryTensor)));
}

- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor
                                     axis:(NSInteger)axis
                                     name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Sum(Of(tensor), axis));
}

- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                       withShape:(MPSShape*)shape
                            name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Reshape(Of(tensor), ToShape(shape)));
}

- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Transpose(Of(tensor), static_cast<int64_t>(dimensionIndex),
                                              static_cast<int64_t>(dimensionIndex2)));
}

- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name {
  return Wrap(
      self, Of(self)->graph.Slice(Of(tensor), static_cast<int64_t>(dimensionIndex), start, length));
}

- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                            name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Concat(Of(tensors), dimensionIndex));
}

- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor
                           toShape:(MPSShape*)shape
                              name:(NSString*)name {
  return Wrap(self, Of(self)->graph.BroadcastTo(Of(tensor), ToShape(shape)));
}

- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor
                            axes:(NSArray<NSNumber*>*)axes
                            name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Reverse(Of(tensor), ToShape(axes)));
}

- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name {
  return Wrap(
      self, Of(self)->graph.Gather(Of(updatesTensor), Of(indicesTensor), static_cast<int64_t>(axis),
                                   static_cast<int64_t>(batchDimensions)));
}

- (MPSGraphTensor*)scatterWithDataTensor:(MPSGraphTensor*)dataTensor
                           updatesTensor:(MPSGraphTensor*)updatesTensor
                           indicesTensor:(MPSGraphTensor*)indicesTensor
                                    axis:(NSInteger)axis
                                    mode:(MPSGraphScatterMode)mode
                                    name:(NSString*)name {
  Require(mode == MPSGraphScatterModeSet, "scatter: mode ", mode, " is not emulated");
  return Wrap(self,
              Of(self)->graph.Scatter(Of(dataTensor), Of(updatesTensor), Of(indicesTensor), axis));
}

- (NSArray<MPSGraphTensor*>*)forLoopWithNumberOfIterations:(MPSGraphTensor*)numberOfIterations
                                      initialBodyArguments:
                                          (NSArray<MPSGraphTensor*>*)initialBodyArguments
                                                      body:(MPSGraphForLoopBodyBlock)body
                                                      name:(NSString*)name {
  const auto build = [=](Tensor* index, const Tensors& arguments) {
    return Of(body(Wrap(self, index), WithoutShapes(Wrap(self, arguments))));
  };
  return WithoutShapes(
      Wrap(self, Of(self)->graph.Loop(Of(numberOfIterations), Of(initialBodyArguments), build)));
}

- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                             mask:(MPSGraphTensor*)mask
                                         peephole:(MPSGraphTensor*)peephole
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name {
  const fake::LstmArguments arguments{Of(source), Of(recurrentWeight), Of(inputWeight),
                                      Of(bias),   Of(initState),       Of(initCell),
                                      Of(mask),   Of(peephole)};
  return Wrap(self, Lstm(&Of(self)->graph, arguments, Of(descriptor)));
}

- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutputFwd
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name {
  const fake::LstmArguments arguments{Of(source), Of(recurrentWeight), Of(inputWeight),
                                      Of(bias),   Of(initState),       Of(initCell),
                                      Of(mask),   Of(peephole)};
  const fake::LstmOutputGrads output_grads{Of(sourceGradient), Of(zState), Of(cellOutputFwd),
                                           Of(stateGradient), Of(cellGradient)};
  return Wrap(self, LstmGradients(&Of(self)->graph, arguments, output_grads, Of(descriptor)));
}
@end
