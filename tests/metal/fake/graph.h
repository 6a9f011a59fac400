// Graph: the content of an MPSGraph and its execution.
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

struct Signature {
  Type type;
  Shape shape;
};

// "Float32[2,3]"
std::string ToString(const Signature& signature);
// The common shape of an operation's arguments.
Shape BroadcastShape(const char* operation, const Signature& a, const Signature& b);
void RequireBroadcasts(const char* operation, const Signature& a, const Shape& shape);

struct Tensor : Signature {
  Graph* graph;
  Operation* producer;  // null: a placeholder
  // A view of another tensor's memory. As a result of a graph it is not written.
  bool is_view;
};

using Tensors = std::vector<Tensor*>;
// The values of an operation's inputs. Null where an input is.
using Inputs = std::vector<const Array*>;
using Compute = std::function<std::vector<Array>(const Inputs& inputs)>;

struct Operation {
  Tensors inputs;
  Tensors outputs;
  Compute compute;
};

class Graph {
 public:
  using Given = std::map<const Tensor*, const Array*>;

  Tensor* Placeholder(const Signature& signature);
  // Adds an operation after checking that its inputs are of this graph. Absent inputs are null.
  Tensors Add(const Tensors& inputs, const std::vector<Signature>& outputs, Compute compute,
              bool is_view = false);

  // The values of `targets` from those of placeholders.
  std::vector<Array> Run(const Tensors& targets, const Given& given) const;

 private:
  Tensor* NewTensor(const Signature& signature, Operation* producer, bool is_view);

  std::deque<Tensor> tensors_;
  std::deque<Operation> operations_;
};

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_GRAPH_H_
