#include "backends/metal/value.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "backends/metal/device.h"

namespace tf_lstm_ops::metal {
namespace {

[[noreturn]] void Raise(NSString* reason) {
  @throw [NSException exceptionWithName:@"TfLstmOpsError" reason:reason userInfo:nil];
}

MPSGraph* GraphOf(const Value& a, const Value& b) { return a.is_scalar() ? b.graph() : a.graph(); }

// `a` as an operand of an elementwise op.
MPSGraphTensor* Operand(MPSGraph* graph, const Value& a) {
  if (!a.is_scalar()) return a.tensor();
  return [graph constantWithScalar:a.scalar() dataType:MPSDataTypeFloat32];
}

// The common shape that values broadcast to.
Extents BroadcastShape(const Values& values) {
  Extents common;
  for (const Value& value : values) {
    if (value.is_scalar()) continue;
    const Extents shape = value.shape();
    if (shape.size() > common.size()) {
      common.insert(common.begin(), shape.size() - common.size(), 1);
    }
    const size_t skipped = common.size() - shape.size();
    for (size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] != 1) common[skipped + k] = shape[k];
    }
  }
  return common;
}

// yes where a < b.
Value IfLess(const Value& a, const Value& b, const Value& yes, const Value& no) {
  MPSGraph* graph = GraphOf(a, b);
  const Extents shape = BroadcastShape({a, b, yes, no});
  MPSGraphTensor* less = [graph lessThanWithPrimaryTensor:BroadcastTo(graph, a, shape).tensor()
                                          secondaryTensor:BroadcastTo(graph, b, shape).tensor()
                                                     name:nil];
  return {graph, [graph selectWithPredicateTensor:less
                              truePredicateTensor:BroadcastTo(graph, yes, shape).tensor()
                             falsePredicateTensor:BroadcastTo(graph, no, shape).tensor()
                                             name:nil]};
}

}  // namespace

Extents Value::shape() const {
  Extents extents;
  MPSShape* shape = [tensor_ shape];
  if (shape == nil) Raise(@"MPSGraph does not know the shape of a tensor");
  for (NSNumber* extent in shape) extents.push_back([extent longLongValue]);
  return extents;
}

int64_t Count(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

MPSShape* MakeShape(const Extents& extents) {
  NSMutableArray* shape = [NSMutableArray arrayWithCapacity:extents.size()];
  for (const int64_t extent : extents) [shape addObject:[NSNumber numberWithLongLong:extent]];
  return shape;
}

Value operator+(const Value& a, const Value& b) {
  if (a.is_scalar() && b.is_scalar()) return a.scalar() + b.scalar();
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  MPSGraph* graph = GraphOf(a, b);
  return {graph, [graph additionWithPrimaryTensor:Operand(graph, a)
                                  secondaryTensor:Operand(graph, b)
                                             name:nil]};
}

Value operator-(const Value& a, const Value& b) {
  if (a.is_scalar() && b.is_scalar()) return a.scalar() - b.scalar();
  if (b.is(0)) return a;
  MPSGraph* graph = GraphOf(a, b);
  return {graph, [graph subtractionWithPrimaryTensor:Operand(graph, a)
                                     secondaryTensor:Operand(graph, b)
                                                name:nil]};
}

Value operator*(const Value& a, const Value& b) {
  if (a.is_scalar() && b.is_scalar()) return a.scalar() * b.scalar();
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  MPSGraph* graph = GraphOf(a, b);
  return {graph, [graph multiplicationWithPrimaryTensor:Operand(graph, a)
                                        secondaryTensor:Operand(graph, b)
                                                   name:nil]};
}

Value operator-(const Value& a) { return a * -1; }

Value IfPositive(const Value& condition, const Value& yes, const Value& no) {
  if (condition.is_scalar()) return condition.scalar() > 0 ? yes : no;
  if (yes.is_scalar() && no.is(yes.scalar())) return yes;
  return IfLess(0, condition, yes, no);
}

void CheckSize(const Extents& extents, int64_t element_size) {
  constexpr int64_t kLimit = int64_t{1} << 32;
  int64_t bytes = element_size;
  for (const int64_t extent : extents) {
    if (extent > 0 && bytes >= (kLimit + extent - 1) / extent) {
      Raise(@"a tensor has 4 GiB or more, which is too large for MPSGraph");
    }
    bytes *= extent;
  }
}

Value MatMul(const Value& a, const Value& b) {
  if (a.is(0) || b.is(0)) return 0;
  constexpr int64_t kMostInOldReleases = 32768;
  const int64_t most = std::max({a.dim(0), a.dim(1), b.dim(1)});
  if (most > kMostInOldReleases && !IsMacOsAtLeast(14, 4)) {
    Raise(@"a product with more than 32,768 rows needs macOS 14.4");
  }
  CheckSize({a.dim(0), b.dim(1)}, sizeof(float));
  return {a.graph(), [a.graph() matrixMultiplicationWithPrimaryTensor:a.tensor()
                                                      secondaryTensor:b.tensor()
                                                                 name:nil]};
}

Value Transposed(const Value& a) {
  if (a.is_scalar()) return a;
  return {a.graph(), [a.graph() transposeTensor:a.tensor() dimension:0 withDimension:1 name:nil]};
}

Value Reversed(const Value& a) {
  if (a.is_scalar()) return a;
  return {a.graph(), [a.graph() reverseTensor:a.tensor() axes:MakeShape({0}) name:nil]};
}

Value Sum(const Value& a, int axis) {
  if (a.is(0)) return 0;
  Extents rest = a.shape();
  rest.erase(rest.begin() + axis);
  return Reshape({a.graph(), [a.graph() reductionSumWithTensor:a.tensor() axis:axis name:nil]},
                 rest);
}

Value Slice(const Value& a, int axis, int64_t start, int64_t length) {
  if (length == 0) return 0;
  if (a.is_scalar() || a.dim(axis) == length) return a;
  return {a.graph(), [a.graph() sliceTensor:a.tensor()
                                  dimension:static_cast<NSUInteger>(axis)
                                      start:static_cast<NSInteger>(start)
                                     length:static_cast<NSInteger>(length)
                                       name:nil]};
}

Value Concat(const Values& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  NSMutableArray* tensors = [NSMutableArray arrayWithCapacity:parts.size()];
  for (const Value& part : parts) [tensors addObject:part.tensor()];
  MPSGraph* graph = parts[0].graph();
  return {graph, [graph concatTensors:tensors dimension:axis name:nil]};
}

Value Reshape(const Value& a, const Extents& extents) {
  if (a.is_scalar() || a.shape() == extents) return a;
  return {a.graph(), [a.graph() reshapeTensor:a.tensor() withShape:MakeShape(extents) name:nil]};
}

Value Gather(const Value& a, const Value& indices) {
  return {a.graph(), [a.graph() gatherWithUpdatesTensor:a.tensor()
                                          indicesTensor:indices.tensor()
                                                   axis:0
                                        batchDimensions:0
                                                   name:nil]};
}

Value Identity(const Value& a) {
  if (a.is_scalar()) return a;
  return {a.graph(), [a.graph() identityWithTensor:a.tensor() name:nil]};
}

Value BroadcastTo(MPSGraph* graph, const Value& a, const Extents& extents) {
  if (a.is_scalar()) {
    return {graph, [graph constantWithScalar:a.scalar()
                                       shape:MakeShape(extents)
                                    dataType:MPSDataTypeFloat32]};
  }
  if (a.shape() == extents) return a;
  return {graph, [graph broadcastTensor:a.tensor() toShape:MakeShape(extents) name:nil]};
}

Value GraphMath::Sigmoid(const Value& z) {
  return {z.graph(), [z.graph() sigmoidWithTensor:z.tensor() name:nil]};
}

Value GraphMath::Tanh(const Value& z) {
  return {z.graph(), [z.graph() tanhWithTensor:z.tensor() name:nil]};
}

Value GraphMath::Min(const Value& a, const Value& b) { return IfLess(b, a, b, a); }

Value GraphMath::Max(const Value& a, const Value& b) { return IfLess(a, b, b, a); }

}  // namespace tf_lstm_ops::metal
