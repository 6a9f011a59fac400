// Value: what a graph computes. With the usual operators, so that equations in
// code read like equations, and a Math for the cells of core/.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_
#define TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <cstdint>
#include <vector>

namespace tf_lstm_ops::metal {

using Extents = std::vector<int64_t>;  // a shape, all of it known

// A Float32 tensor of a graph, or a number that is known while the graph is
// built, of any shape. What is absent counts as the number 0, and so do tensors
// without elements: sums and products with 0 and 1 leave no trace in the graph.
//
// The graph owns its tensors: a Value is valid for as long as the graph.
class Value {
 public:
  Value(double number = 0) : number_(number) {}  // NOLINT: 1 - y is meant
  Value(MPSGraph* graph, MPSGraphTensor* tensor)
      : graph_(graph), tensor_(tensor) {}

  bool is_number() const { return tensor_ == nil; }
  bool is(double number) const { return is_number() && number_ == number; }
  double number() const { return number_; }
  MPSGraph* graph() const { return graph_; }
  MPSGraphTensor* tensor() const { return tensor_; }
  Extents shape() const;
  int64_t dim(int k) const { return shape()[k]; }

 private:
  MPSGraph* graph_ = nil;
  MPSGraphTensor* tensor_ = nil;
  double number_ = 0;
};

using Values = std::vector<Value>;

MPSShape* MakeShape(const Extents& extents);

// Elementwise; shapes broadcast as NumPy's do.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, double b);
Value operator-(const Value& a);
Value IfPositive(const Value& condition, const Value& yes, const Value& no);

// [M,K] [K,N] -> [M,N]
Value MatMul(const Value& a, const Value& b);
Value Transposed(const Value& a);     // the first two axes change places
Value Reversed(const Value& a);       // along the first axis
Value Sum(const Value& a, int axis);  // the axis goes
Value Slice(const Value& a, int axis, int64_t start, int64_t length);
Value Concat(const Values& parts, int axis);  // of tensors
Value Reshape(const Value& a, const Extents& extents);
// A tensor for the graph even where `a` is a number.
Value BroadcastTo(MPSGraph* graph, const Value& a, const Extents& extents);

// What the cells' equations want of numbers; see core/lstm_cell.h.
struct GraphMath {
  using Value = metal::Value;
  static Value Sigmoid(const Value& z);
  static Value Tanh(const Value& z);
  // NaN in `a` is passed on.
  static Value Min(const Value& a, const Value& b);
  static Value Max(const Value& a, const Value& b);
  static Value IfPositive(const Value& condition, const Value& yes,
                          const Value& no) {
    return metal::IfPositive(condition, yes, no);
  }
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_VALUE_H_
