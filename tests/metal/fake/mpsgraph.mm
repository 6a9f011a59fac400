// MPSGraph: its methods check their arguments and add operations to a Graph.
#include "mpsgraph.h"

#include <cmath>

#include "misuse.h"

using namespace fake;

namespace {

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

Tensor* Present(MPSGraphTensor* tensor) {
  Require(tensor != nil, "a tensor is nil");
  return Of(tensor);
}

// Adds an operation with one result.
template <class Function>
MPSGraphTensor* Add(MPSGraph* graph, const Tensors& inputs, const Signature& result,
                    Function compute, bool is_view = false) {
  const auto compute_all = [=](const Inputs& values) {
    return std::vector<Array>{compute(values)};
  };
  return Wrap(graph, Of(graph)->graph.Add(inputs, {result}, compute_all, is_view)[0]);
}

void RequireType(const char* name, const Tensor* a, Type type) {
  Require(a->type == type, name, ": takes ", ToString(type), " but got ", ToString(*a));
}

void RequireSameType(const char* name, const Tensor* a, const Tensor* b) {
  Require(a->type == b->type, name, ": types differ: ", ToString(*a), " and ", ToString(*b));
}

void RequireRank(const char* name, const Tensor* a, size_t rank) {
  Require(a->shape.size() == rank, name, ": takes rank ", rank, " but got ", ToString(*a));
}

// The kernels count no axis from the end.
size_t CheckedAxis(const char* name, const Tensor* a, int64_t axis) {
  const auto rank = static_cast<int64_t>(a->shape.size());
  Require(0 <= axis && axis < rank, name, ": axis ", axis, " of ", ToString(*a));
  return static_cast<size_t>(axis);
}

MPSGraphTensor* Constant(MPSGraph* graph, double scalar, const Shape& shape,
                         MPSDataType data_type) {
  const Type type = CheckedType(data_type);
  Require(type == Type::kFloat32, "constant: takes Float32 but got ", ToString(type));
  return Add(graph, {}, {type, shape}, [=](const Inputs&) {
    return Map(Array(type, shape), [=](float) { return static_cast<float>(scalar); });
  });
}

template <class Function>
MPSGraphTensor* Unary(MPSGraph* graph, const char* name, MPSGraphTensor* tensor,
                      Function function) {
  Tensor* a = Present(tensor);
  RequireType(name, a, Type::kFloat32);
  return Add(graph, {a}, *a, [=](const Inputs& inputs) { return Map(*inputs[0], function); });
}

template <class Function>
MPSGraphTensor* Binary(MPSGraph* graph, const char* name, MPSGraphTensor* primary,
                       MPSGraphTensor* secondary, Function function) {
  Tensor *a = Present(primary), *b = Present(secondary);
  for (const Tensor* one : {a, b}) RequireType(name, one, Type::kFloat32);
  const Shape shape = BroadcastShape(name, *a, *b);
  constexpr bool kCompares = std::is_same_v<decltype(function(1.0F, 1.0F)), bool>;
  const Type type = kCompares ? Type::kBool : a->type;
  return Add(graph, {a, b}, {type, shape}, [=](const Inputs& inputs) {
    Array array = Map(Broadcast(*inputs[0], shape), *inputs[1], function);
    array.type = type;
    return array;
  });
}

MPSGraphTensor* View(MPSGraph* graph, Tensor* a, const Shape& shape, int64_t offset,
                     const std::vector<int64_t>& strides) {
  const auto compute = [=](const Inputs& in) { return Strided(*in[0], shape, offset, strides); };
  return Add(graph, {a}, {a->type, shape}, compute, /*is_view=*/true);
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

// --- where values come from ------------------------------------------------

- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType
                                   name:(NSString*)name {
  return Wrap(self, Of(self)->graph.Placeholder({CheckedType(dataType), ToShape(shape)}));
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType {
  return Constant(self, scalar, {1}, dataType);
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar
                                shape:(MPSShape*)shape
                             dataType:(MPSDataType)dataType {
  return Constant(self, scalar, ToShape(shape), dataType);
}

// --- element by element ----------------------------------------------------

- (MPSGraphTensor*)identityWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  Tensor* a = Present(tensor);
  return Add(self, {a}, *a, [](const Inputs& inputs) { return *inputs[0]; });
}

- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor
                       toType:(MPSDataType)dataType
                         name:(NSString*)name {
  Tensor* a = Present(tensor);
  const Type type = CheckedType(dataType);
  return Add(self, {a}, {type, a->shape}, [=](const Inputs& inputs) {
    Array array = Map(*inputs[0], [=](float value) { return Round(type, value); });
    array.type = type;
    return array;
  });
}

- (MPSGraphTensor*)sigmoidWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return Unary(self, "sigmoid", tensor, [](float v) { return 1 / (1 + std::exp(-v)); });
}

- (MPSGraphTensor*)tanhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name {
  return Unary(self, "tanh", tensor, [](float v) { return std::tanh(v); });
}

- (MPSGraphTensor*)additionWithPrimaryTensor:(MPSGraphTensor*)a
                             secondaryTensor:(MPSGraphTensor*)b
                                        name:(NSString*)name {
  return Binary(self, "addition", a, b, std::plus<float>());
}

- (MPSGraphTensor*)subtractionWithPrimaryTensor:(MPSGraphTensor*)a
                                secondaryTensor:(MPSGraphTensor*)b
                                           name:(NSString*)name {
  return Binary(self, "subtraction", a, b, std::minus<float>());
}

- (MPSGraphTensor*)multiplicationWithPrimaryTensor:(MPSGraphTensor*)a
                                   secondaryTensor:(MPSGraphTensor*)b
                                              name:(NSString*)name {
  return Binary(self, "multiplication", a, b, std::multiplies<float>());
}

- (MPSGraphTensor*)lessThanWithPrimaryTensor:(MPSGraphTensor*)a
                             secondaryTensor:(MPSGraphTensor*)b
                                        name:(NSString*)name {
  return Binary(self, "lessThan", a, b, std::less<float>());
}

- (MPSGraphTensor*)selectWithPredicateTensor:(MPSGraphTensor*)predicateTensor
                         truePredicateTensor:(MPSGraphTensor*)truePredicateTensor
                        falsePredicateTensor:(MPSGraphTensor*)falseSelectTensor
                                        name:(NSString*)name {
  Tensor* predicate = Present(predicateTensor);
  Tensor *a = Present(truePredicateTensor), *b = Present(falseSelectTensor);
  RequireType("select", predicate, Type::kBool);
  RequireSameType("select", a, b);
  Require(predicate->shape == a->shape && a->shape == b->shape,
          "select: shapes differ: ", ToString(*predicate), ", ", ToString(*a), " and ",
          ToString(*b));
  return Add(self, {predicate, a, b}, *a, [](const Inputs& in) {
    Array array = *in[1];
    for (size_t k = 0; k < array.values.size(); ++k) {
      if (in[0]->values[k] == 0) array.values[k] = in[2]->values[k];
    }
    return array;
  });
}

// --- sums ------------------------------------------------------------------

- (MPSGraphTensor*)matrixMultiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                         secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                    name:(NSString*)name {
  const char* product = "matrixMultiplication";
  Tensor *a = Present(primaryTensor), *b = Present(secondaryTensor);
  for (const Tensor* tensor : {a, b}) {
    RequireType(product, tensor, Type::kFloat32);
    RequireRank(product, tensor, 2);
  }
  Require(a->shape[1] == b->shape[0], product, ": ", ToString(*a), " times ", ToString(*b));
  return Add(self, {a, b}, {a->type, {a->shape[0], b->shape[1]}},
             [](const Inputs& inputs) { return MatrixProduct(*inputs[0], *inputs[1]); });
}

- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor
                                     axis:(NSInteger)axis
                                     name:(NSString*)name {
  Tensor* a = Present(tensor);
  RequireType("reductionSum", a, Type::kFloat32);
  const size_t along = CheckedAxis("reductionSum", a, axis);
  Signature sum = *a;
  sum.shape[along] = 1;
  return Add(self, {a}, sum, [=](const Inputs& inputs) { return Sum(*inputs[0], along); });
}

// --- moving values ---------------------------------------------------------

- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                       withShape:(MPSShape*)sizes
                            name:(NSString*)name {
  Tensor* a = Present(tensor);
  const Shape shape = ToShape(sizes);
  Require(SizeOf(shape) == SizeOf(a->shape), "reshape: ", ToString(*a), " to ", ToString(shape));
  return View(self, a, shape, 0, StridesOf(shape));
}

- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name {
  Tensor* a = Present(tensor);
  std::vector<int64_t> strides = StridesOf(a->shape);
  Shape shape = a->shape;
  const size_t first = CheckedAxis("transpose", a, static_cast<int64_t>(dimensionIndex));
  const size_t second = CheckedAxis("transpose", a, static_cast<int64_t>(dimensionIndex2));
  std::swap(strides[first], strides[second]);
  std::swap(shape[first], shape[second]);
  return View(self, a, shape, 0, strides);
}

- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name {
  Tensor* a = Present(tensor);
  const size_t along = CheckedAxis("slice", a, static_cast<int64_t>(dimensionIndex));
  Require(0 <= start && 0 < length && start + length <= a->shape[along], "slice: ", ToString(*a),
          ", start ", start, ", length ", length, " along axis ", along);
  const std::vector<int64_t> strides = StridesOf(a->shape);
  Shape shape = a->shape;
  shape[along] = length;
  return View(self, a, shape, start * strides[along], strides);
}

- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)axis
                            name:(NSString*)name {
  const Tensors parts = Of(tensors);
  Require(!parts.empty(), "concat: no tensors");
  const size_t along = CheckedAxis("concat", parts[0], axis);
  Signature whole = *parts[0];
  whole.shape[along] = 0;
  for (const Tensor* part : parts) {
    RequireSameType("concat", part, parts[0]);
    Shape expected = parts[0]->shape;
    RequireRank("concat", part, expected.size());
    expected[along] = part->shape[along];
    Require(part->shape == expected, "concat: ", ToString(*parts[0]), " and ", ToString(*part),
            " along axis ", axis);
    whole.shape[along] += part->shape[along];
  }
  return Add(self, parts, whole, [=](const Inputs& inputs) { return Concat(inputs, along); });
}

- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor
                           toShape:(MPSShape*)sizes
                              name:(NSString*)name {
  Tensor* a = Present(tensor);
  const Shape shape = ToShape(sizes);
  RequireBroadcasts("broadcast", *a, shape);
  const auto compute = [=](const Inputs& inputs) { return Broadcast(*inputs[0], shape); };
  return Add(self, {a}, {a->type, shape}, compute, /*is_view=*/true);
}

- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor
                            axes:(NSArray<NSNumber*>*)axes
                            name:(NSString*)name {
  Tensor* a = Present(tensor);
  std::vector<int64_t> strides = StridesOf(a->shape);
  Require(ToShape(axes) == Shape{0}, "reverse: only axis 0 is emulated");
  const int64_t offset = strides[0] * (a->shape[0] - 1);
  strides[0] = -strides[0];
  return View(self, a, a->shape, offset, strides);
}

- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name {
  Tensor *a = Present(updatesTensor), *indices = Present(indicesTensor);
  Require(axis == 0 && batchDimensions == 0, "gather: not emulated along axis ", axis);
  RequireType("gather", indices, Type::kInt32);
  RequireRank("gather", indices, 1);
  Signature result = *a;
  result.shape[0] = indices->shape[0];
  return Add(self, {a, indices}, result, [=](const Inputs& inputs) {
    std::vector<Array> rows;
    for (float value : inputs[1]->values) {
      const auto size = static_cast<float>(inputs[0]->shape[0]);
      Require(0 <= value && value < size, "gather: index ", value, " of ", size);
      rows.push_back(Slice(*inputs[0], 0, static_cast<int64_t>(value), 1));
    }
    return Concat(PointersTo(rows), 0);
  });
}

// --- LSTM ------------------------------------------------------------------

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
  return Wrap(self, Lstm(&Of(self)->graph,
                         {Of(source), Of(recurrentWeight), Of(inputWeight), Of(bias), Of(initState),
                          Of(initCell), Of(mask), Of(peephole)},
                         descriptor));
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
  return Wrap(
      self, LstmGradients(&Of(self)->graph,
                          {Of(source), Of(recurrentWeight), Of(inputWeight), Of(bias),
                           Of(initState), Of(initCell), Of(mask), Of(peephole), Of(sourceGradient),
                           Of(zState), Of(cellOutputFwd), Of(stateGradient), Of(cellGradient)},
                          descriptor));
}
@end
