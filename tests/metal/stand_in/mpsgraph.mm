// MPSGraph: Apple's classes over the stand-in's Graph.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "counts.h"
#include "graph.h"
#include "lstm.h"
#include "metal.h"
#include "misuse.h"

using stand_in::Array;
using stand_in::CheckedType;
using stand_in::counts;
using stand_in::Graph;
using stand_in::Require;
using stand_in::Shape;
using stand_in::SizeOf;
using stand_in::Tensor;
using stand_in::Tensors;
using stand_in::ToString;
using stand_in::Type;

namespace {

constexpr int kUnwritten = 0xFF;
// How many encodings lie between two at which MPSGraph commits what it has.
constexpr long kEncodingsPerCommit = 3;

struct TensorData {
  StandInBuffer* buffer;
  Shape shape;
  Type type;
};

struct GraphAndTensors {
  Graph graph;
  std::vector<MPSGraphTensor*> tensors;  // retained: a graph owns its tensors
  std::mutex encoding;
};

Shape ToShape(MPSShape* sizes) {
  Require(sizes != nil, "a shape is nil");
  Shape shape;
  for (NSNumber* size in sizes) shape.push_back([size longLongValue]);
  return shape;
}

MPSShape* FromShape(const Shape& shape) {
  NSMutableArray* sizes = [NSMutableArray arrayWithCapacity:shape.size()];
  for (int64_t size : shape) {
    [sizes addObject:[NSNumber numberWithLongLong:size]];
  }
  return sizes;
}

Tensor* Of(MPSGraphTensor* tensor) {
  return tensor == nil ? nullptr : static_cast<Tensor*>(tensor->_impl);
}

Tensors Of(NSArray<MPSGraphTensor*>* tensors) {
  Tensors all;
  for (MPSGraphTensor* tensor in tensors) all.push_back(Of(tensor));
  return all;
}

TensorData* Of(MPSGraphTensorData* data) { return static_cast<TensorData*>(data->_impl); }

GraphAndTensors* Of(MPSGraph* graph) { return static_cast<GraphAndTensors*>(graph->_impl); }

MPSGraphTensor* Wrap(MPSGraph* graph, Tensor* tensor) {
  MPSGraphTensor* wrapped = [[MPSGraphTensor alloc] init];
  wrapped->_impl = tensor;
  Of(graph)->tensors.push_back(wrapped);
  return wrapped;
}

NSArray* Wrap(MPSGraph* graph, const Tensors& tensors) {
  NSMutableArray* all = [NSMutableArray arrayWithCapacity:tensors.size()];
  for (Tensor* tensor : tensors) [all addObject:Wrap(graph, tensor)];
  return all;
}

stand_in::LstmDescriptor Of(MPSGraphLSTMDescriptor* d) {
  Require(d != nil, "LSTM: descriptor is nil");
  const auto activation = [](MPSGraphRNNActivation chosen) {
    Require(chosen <= MPSGraphRNNActivationHardSigmoid, "LSTM: activation ", chosen);
    return static_cast<stand_in::Activation>(chosen);
  };
  return {static_cast<bool>(d.reverse),        static_cast<bool>(d.bidirectional),
          static_cast<bool>(d.produceCell),    static_cast<bool>(d.training),
          static_cast<bool>(d.forgetGateLast), activation(d.inputGateActivation),
          activation(d.forgetGateActivation),  activation(d.cellGateActivation),
          activation(d.outputGateActivation),  activation(d.activation)};
}

}  // namespace

@implementation MPSGraphObject
@end

@implementation MPSGraphTensor
- (MPSShape*)shape {
  return FromShape(Of(self)->shape);
}

- (MPSDataType)dataType {
  return static_cast<MPSDataType>(Of(self)->type);
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@implementation MPSGraphTensorData
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer
                            shape:(MPSShape*)shape
                         dataType:(MPSDataType)dataType {
  if ((self = [super init])) {
    const Shape sizes = ToShape(shape);
    const Type type = CheckedType(dataType);
    Require(buffer != nil, "MPSGraphTensorData: the buffer is nil");
    Require([(id)buffer isKindOfClass:[StandInBuffer class]], "MPSGraphTensorData: not a buffer");
    const int64_t bytes = SizeOf(sizes) * BytesOf(type);
    Require(0 < bytes && bytes <= static_cast<int64_t>([buffer length]),
            "MPSGraphTensorData: ", ToString(type), ToString(sizes), " in a buffer of ",
            [buffer length], " bytes");
    _impl = new TensorData{[(StandInBuffer*)buffer retain], sizes, type};
    ++counts.tensor_data;
  }
  return self;
}

- (MPSShape*)shape {
  return FromShape(Of(self)->shape);
}

- (MPSDataType)dataType {
  return static_cast<MPSDataType>(Of(self)->type);
}

- (void)dealloc {
  if (_impl != nullptr) {
    [Of(self)->buffer release];
    delete Of(self);
    --counts.tensor_data;
  }
  [super dealloc];
}
@end

@implementation MPSGraphLSTMDescriptor
@synthesize reverse = _reverse, bidirectional = _bidirectional, produceCell = _produceCell,
            training = _training, forgetGateLast = _forgetGateLast;
@synthesize inputGateActivation = _inputGateActivation,
            forgetGateActivation = _forgetGateActivation, cellGateActivation = _cellGateActivation,
            outputGateActivation = _outputGateActivation, activation = _activation;

+ (instancetype)descriptor {
  MPSGraphLSTMDescriptor* d = [[[self alloc] init] autorelease];
  d.inputGateActivation = MPSGraphRNNActivationSigmoid;
  d.forgetGateActivation = MPSGraphRNNActivationSigmoid;
  d.outputGateActivation = MPSGraphRNNActivationSigmoid;
  d.cellGateActivation = MPSGraphRNNActivationTanh;
  d.activation = MPSGraphRNNActivationTanh;
  return d;
}

- (id)copyWithZone:(NSZone*)zone {
  return NSCopyObject(self, 0, zone);
}
@end

// --- running a graph -------------------------------------------------------

namespace {

using Pairs = std::vector<std::pair<Tensor*, TensorData*>>;

Pairs PairsOf(const char* what, Graph* graph, MPSGraphTensorDataDictionary* dictionary) {
  Pairs pairs;
  for (MPSGraphTensor* key in dictionary) {
    Tensor* tensor = Of(key);
    TensorData* data = Of([dictionary objectForKey:key]);
    Require(tensor->graph == graph, what, ": a tensor of another graph");
    Require(data->shape == tensor->shape && data->type == tensor->type, what, ": data ",
            ToString(data->type), ToString(data->shape), " for a tensor ", ToString(*tensor));
    pairs.emplace_back(tensor, data);
  }
  return pairs;
}

void RequireFed(const Graph& graph, const Pairs& feeds, const Tensors& needed) {
  Graph::Given given;
  for (const auto& [tensor, data] : feeds) {
    Require(tensor->producer == nullptr, "feeds: ", ToString(*tensor), " is no placeholder");
    given[tensor] = nullptr;
  }
  for (const Tensor* placeholder : graph.PlaceholdersOf(needed)) {
    Require(given.count(placeholder) != 0, "feeds: nothing for a placeholder ",
            ToString(*placeholder));
  }
}

// What has a result's memory until the graph has run.
void Poison(const Pairs& results) {
  for (const auto& [tensor, data] : results) {
    // Work that was encoded before may still read it.
    if (*data->buffer->_pending != 0) continue;
    std::memset(data->buffer->_memory, kUnwritten, SizeOf(data->shape) * BytesOf(data->type));
  }
}

void Run(const Graph& graph, const Pairs& feeds, const Pairs& results) {
  std::deque<Array> arrays;
  Graph::Given given;
  for (const auto& [tensor, data] : feeds) {
    arrays.push_back(FromMemory(data->type, data->shape, data->buffer->_memory));
    given[tensor] = &arrays.back();
  }
  Tensors targets;
  for (const auto& [tensor, data] : results) targets.push_back(tensor);
  const std::vector<Array> values = graph.Run(targets, given);
  for (size_t k = 0; k < results.size(); ++k) {
    const auto& [tensor, data] = results[k];
    // The newer plugin's notes: outputs that are mere views are never written.
    if (!tensor->is_view) ToMemory(values[k], data->buffer->_memory);
  }
}

std::vector<StandInBuffer*> BuffersOf(const Pairs& feeds, const Pairs& results) {
  std::vector<StandInBuffer*> buffers;
  for (const auto& [tensor, data] : feeds) buffers.push_back(data->buffer);
  for (const auto& [tensor, data] : results) {
    for (StandInBuffer* other : buffers) {
      Require(other != data->buffer,
              "results: a buffer is fed, or written twice, at the same time");
    }
    buffers.push_back(data->buffer);
  }
  return buffers;
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
  const std::unique_lock<std::mutex> lock(Of(self)->encoding, std::try_to_lock);
  Require(lock.owns_lock(), "encode: the graph is encoded by another thread");
  Require(commandBuffer != nil, "encode: the command buffer is nil");
  Require(targetOperations == nil && executionDescriptor == nil,
          "encode: targetOperations and executionDescriptor are not in the "
          "stand-in");
  const Graph& graph = Of(self)->graph;
  const Pairs fed = PairsOf("feeds", &Of(self)->graph, feeds);
  const Pairs results = PairsOf("results", &Of(self)->graph, resultsDictionary);
  Require(!results.empty(), "encode: no results");
  Tensors targets;
  for (const auto& [tensor, data] : results) {
    Require(graph.IsAtTop(*tensor), "results: a tensor of a loop's body");
    targets.push_back(tensor);
  }
  RequireFed(graph, fed, targets);
  const std::vector<StandInBuffer*> buffers = BuffersOf(fed, results);
  Poison(results);

  if (++counts.encodings % kEncodingsPerCommit == 0) {
    [commandBuffer commitAndContinue];
  }
  const std::vector<std::shared_ptr<void>> kept = {Kept(self), Kept([[feeds copy] autorelease]),
                                                   Kept([[resultsDictionary copy] autorelease])};
  StandInCommandBuffer* root = (StandInCommandBuffer*)[commandBuffer rootCommandBuffer];
  [root addWork:[&graph, fed, results, kept] { Run(graph, fed, results); }
             by:"encodeToCommandBuffer"
          using:buffers];
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
  Require(mode == MPSGraphScatterModeSet, "scatter: mode ", mode, " is not in the stand-in");
  return Wrap(self,
              Of(self)->graph.Scatter(Of(dataTensor), Of(updatesTensor), Of(indicesTensor), axis));
}

- (NSArray<MPSGraphTensor*>*)forLoopWithNumberOfIterations:(MPSGraphTensor*)numberOfIterations
                                      initialBodyArguments:
                                          (NSArray<MPSGraphTensor*>*)initialBodyArguments
                                                      body:(MPSGraphForLoopBodyBlock)body
                                                      name:(NSString*)name {
  const auto build = [=](Tensor* index, const Tensors& arguments) {
    return Of(body(Wrap(self, index), Wrap(self, arguments)));
  };
  return Wrap(self, Of(self)->graph.Loop(Of(numberOfIterations), Of(initialBodyArguments), build));
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
  const stand_in::LstmArguments arguments{Of(source), Of(recurrentWeight), Of(inputWeight),
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
  const stand_in::LstmArguments arguments{Of(source), Of(recurrentWeight), Of(inputWeight),
                                          Of(bias),   Of(initState),       Of(initCell),
                                          Of(mask),   Of(peephole)};
  const stand_in::LstmUpstream upstream{Of(sourceGradient), Of(zState), Of(cellOutputFwd),
                                        Of(stateGradient), Of(cellGradient)};
  return Wrap(self, LstmGradients(&Of(self)->graph, arguments, upstream, Of(descriptor)));
}
@end
