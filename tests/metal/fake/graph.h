// Graph: the content of an MPSGraph, the checks while it is built, and its
// execution.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_GRAPH_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_GRAPH_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "array.h"

namespace fake {

class Graph;
struct Operation;

// The body of a loop, or the whole graph.
struct Scope {
  Scope* outer;
};

struct Tensor {
  Graph* graph;
  Scope* scope;
  Operation* producer;  // null: a placeholder, or an argument of a loop's body
  Type type;
  Shape shape;
  // A view of another tensor's memory. As a result of a graph it is not
  // written.
  bool is_view;
};

using Tensors = std::vector<Tensor*>;
// Computes the values of an operation's outputs from those of its inputs.
using Compute =
    std::function<std::vector<Array>(const std::vector<const Array*>& inputs)>;

struct Operation {
  Scope* scope;
  Tensors inputs;
  Tensors outputs;
  Compute compute;
};

struct Signature {
  Type type;
  Shape shape;
};

// "Float32[2,3]"
std::string ToString(const Tensor& tensor);

class Graph {
 public:
  using Given = std::map<const Tensor*, const Array*>;
  using Body = std::function<Tensors(Tensor* index, const Tensors& arguments)>;

  Tensor* Placeholder(Type type, const Shape& shape);
  Tensor* Constant(double scalar, const Shape& shape, Type type);

  Tensor* Identity(Tensor* a);
  Tensor* Cast(Tensor* a, Type type);
  Tensor* Sigmoid(Tensor* a);
  Tensor* Tanh(Tensor* a);
  Tensor* Add(Tensor* a, Tensor* b);
  Tensor* Subtract(Tensor* a, Tensor* b);
  Tensor* Multiply(Tensor* a, Tensor* b);
  Tensor* Less(Tensor* a, Tensor* b);
  Tensor* Select(Tensor* predicate, Tensor* a, Tensor* b);

  Tensor* MatMul(Tensor* a, Tensor* b);
  Tensor* Sum(Tensor* a, int64_t axis);

  Tensor* Reshape(Tensor* a, const Shape& shape);
  Tensor* Transpose(Tensor* a, int64_t axis, int64_t other);
  Tensor* Slice(Tensor* a, int64_t axis, int64_t start, int64_t length);
  Tensor* Concat(const Tensors& parts, int64_t axis);
  Tensor* BroadcastTo(Tensor* a, const Shape& shape);
  Tensor* Reverse(Tensor* a, const std::vector<int64_t>& axes);
  Tensor* Gather(Tensor* a, Tensor* indices, int64_t axis,
                 int64_t batch_dimensions);
  Tensor* Scatter(Tensor* a, Tensor* updates, Tensor* indices, int64_t axis);

  Tensors Loop(Tensor* iterations, const Tensors& arguments, const Body& body);

  // Adds an operation after checking that its inputs may be used here.
  Tensors AddOperation(const Tensors& inputs,
                       const std::vector<Signature>& outputs, Compute compute,
                       bool is_view = false);

  // The values of `targets` from those of placeholders.
  std::vector<Array> Run(const Tensors& targets, const Given& given) const;
  // The placeholders that `targets` depend on.
  Tensors PlaceholdersOf(const Tensors& targets) const;
  bool IsAtTop(const Tensor& tensor) const { return tensor.scope == &top_; }

 private:
  Tensor* AddOne(const Tensors& inputs, const Signature& output,
                 Compute compute, bool is_view = false);
  Tensor* NewTensor(const Signature& signature, Operation* producer,
                    bool is_view);
  void RequireUsable(const Tensor* tensor) const;
  Tensor* View(Tensor* a, const Shape& shape, int64_t offset,
               const std::vector<int64_t>& strides);
  template <class Function>
  Tensor* Unary(const char* name, Tensor* a, Function function);
  template <class Function>
  Tensor* Binary(const char* name, Tensor* a, Tensor* b, bool compares,
                 Function function);
  Tensors Captures(const Scope* scope, const Tensors& results) const;
  std::vector<Array> RunScope(const Scope* scope, const Tensors& targets,
                              const Given& given) const;

  std::deque<Tensor> tensors_;
  std::deque<Operation> operations_;  // an operation's inputs come before it
  std::deque<Scope> bodies_;
  Scope top_{nullptr};
  Scope* current_ = &top_;
};

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_GRAPH_H_
