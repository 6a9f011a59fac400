// The classes of MPSGraph besides the graph itself.
#include "mpsgraph.h"

#include "misuse.h"

namespace fake {

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

}  // namespace fake

using namespace fake;

@implementation MPSGraphObject
@end

@implementation MPSGraphCompilationDescriptor
@synthesize optimizationLevel = _optimizationLevel;
- (instancetype)init {
  if ((self = [super init])) _optimizationLevel = MPSGraphOptimizationLevel1;
  return self;
}
@end

@implementation MPSGraphExecutionDescriptor
@synthesize compilationDescriptor = _compilationDescriptor;
@end

@implementation MPSGraphTensor
- (MPSShape*)shape {
  return FromShape(Of(self)->shape);
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
    Require([(id)buffer isKindOfClass:[FakeBuffer class]], "MPSGraphTensorData: not a buffer");
    const int64_t bytes = SizeOf(sizes) * BytesOf(type);
    Require(0 < bytes && bytes <= static_cast<int64_t>([buffer length]),
            "MPSGraphTensorData: ", ToString(type), ToString(sizes), " in a buffer of ",
            [buffer length], " bytes");
    _impl = new TensorData{[(FakeBuffer*)buffer retain], sizes, type};
    ++counts.tensor_data;
  }
  return self;
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
@synthesize produceCell = _produceCell, training = _training, forgetGateLast = _forgetGateLast;
@synthesize inputGateActivation = _inputGateActivation,
            forgetGateActivation = _forgetGateActivation, cellGateActivation = _cellGateActivation,
            outputGateActivation = _outputGateActivation, activation = _activation;

// Without Apple's default activations: the kernels choose all of them.
+ (instancetype)descriptor {
  return [[[self alloc] init] autorelease];
}
@end
