// Value: a tensor of an MPSGraph graph, with arithmetic operators, and GraphMath, the Math of the
// cell equations in core/.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_
#define TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <cstdint>
#include <vector>

namespace tf_lstm_ops::metal {

using Extents = std::vector<int64_t>;  // a fully known shape

// A Float32 tensor of a graph (Int32 for Gather's indices), or a scalar that is known while the
// graph is built and broadcasts to any shape. Absent arguments and tensors without elements are the
// scalar 0. Sums with 0 and products with 0 or 1 add no operation to the graph.
//
// The graph owns its tensors: a Value is valid as long as the graph.
class Value {
 public:
  Value(double scalar = 0) : scalar_(scalar) {}  // NOLINT: implicit, for 1 - y
  Value(MPSGraph* graph, MPSGraphTensor* tensor) : graph_(graph), tensor_(tensor) {}

  bool is_scalar() const { return tensor_ == nil; }
  bool is(double scalar) const { return is_scalar() && scalar_ == scalar; }
  double scalar() const { return scalar_; }
  MPSGraph* graph() const { return graph_; }
  MPSGraphTensor* tensor() const { return tensor_; }
  // Raises an NSException where MPSGraph does not know the shape.
  Extents shape() const;
  int64_t dim(int k) const { return shape()[k]; }

 private:
  MPSGraph* graph_ = nil;
  MPSGraphTensor* tensor_ = nil;
  double scalar_ = 0;
};

using Values = std::vector<Value>;

int64_t Count(const Extents& extents);  // of elements

// Returns an autoreleased shape.
MPSShape* MakeShape(const Extents& extents);

// Raises an NSException for a tensor of 4 GiB or more, for which MPSGraph ends the process.
// `element_size` is in bytes.
void CheckSize(const Extents& extents, int64_t element_size);

// Elementwise. Shapes broadcast as NumPy's do.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator-(const Value& a);
// yes where condition > 0, else no. NaN in the value that is not chosen does not reach the result.
Value IfPositive(const Value& condition, const Value& yes, const Value& no);

// [M,K] [K,N] -> [M,N]. Raises an NSException where an extent exceeds 32,768 and macOS is older
// than 14.4: MPSGraph's results are then wrong. Source: the condition use_metal_mm in PyTorch.
Value MatMul(const Value& a, const Value& b);
// The functions below return a scalar argument unchanged.
Value Transposed(const Value& a);     // swaps the first two axes
Value Reversed(const Value& a);       // along the first axis
Value Sum(const Value& a, int axis);  // removes the axis; `a`: a tensor or 0
Value Slice(const Value& a, int axis, int64_t start, int64_t length);
Value Reshape(const Value& a, const Extents& extents);
// Rows of `a` by their numbers: `indices` are an Int32 vector.
Value Gather(const Value& a, const Value& indices);
// A copy of a tensor. MPSGraph's rules about views and fused shapes end there.
Value Identity(const Value& a);

// All parts are tensors. A single part may be a scalar.
Value Concat(const Values& parts, int axis);
// The result is a tensor of `graph` even where `a` is a scalar.
Value BroadcastTo(MPSGraph* graph, const Value& a, const Extents& extents);

// The arithmetic that the cell equations need; see core/lstm_cell.h. An argument is a tensor, of
// Min and Max one of the two at least.
struct GraphMath {
  using Value = metal::Value;
  static Value Sigmoid(const Value& z);
  static Value Tanh(const Value& z);
  // NaN if `a` is NaN.
  static Value Min(const Value& a, const Value& b);
  static Value Max(const Value& a, const Value& b);
  static Value IfPositive(const Value& condition, const Value& yes, const Value& no) {
    return metal::IfPositive(condition, yes, no);
  }
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_
