#include "graph.h"

#include <algorithm>
#include <utility>

#include "misuse.h"

namespace fake {

std::string ToString(const Signature& signature) {
  return ToString(signature.type) + ToString(signature.shape);
}

Shape BroadcastShape(const char* operation, const Signature& a, const Signature& b) {
  Shape shape(std::max(a.shape.size(), b.shape.size()), 1);
  for (const Signature* one : {&a, &b}) {
    const size_t added = shape.size() - one->shape.size();
    for (size_t axis = 0; axis < one->shape.size(); ++axis) {
      const int64_t dim = one->shape[axis];
      int64_t& both = shape[added + axis];
      Require(both == 1 || dim == 1 || both == dim, operation, ": ", ToString(a), " and ",
              ToString(b), " do not broadcast");
      both = std::max(both, dim);
    }
  }
  return shape;
}

void RequireBroadcasts(const char* operation, const Signature& a, const Shape& shape) {
  Require(BroadcastShape(operation, a, {a.type, shape}) == shape, operation, ": ", ToString(a),
          " to ", ToString(shape));
}

Tensor* Graph::NewTensor(const Signature& signature, Operation* producer, bool is_view) {
  for (int64_t dim : signature.shape) {
    Require(dim > 0, "a tensor of shape ", ToString(signature.shape),
            ": every size must be positive");
  }
  tensors_.push_back({signature, this, producer, is_view});
  return &tensors_.back();
}

Tensor* Graph::Placeholder(const Signature& signature) {
  return NewTensor(signature, nullptr, /*is_view=*/true);
}

Tensors Graph::Add(const Tensors& inputs, const std::vector<Signature>& outputs, Compute compute,
                   bool is_view) {
  for (const Tensor* input : inputs) {
    Require(input == nullptr || input->graph == this,
            "a tensor of another graph: ", input ? ToString(*input) : "");
  }
  operations_.push_back({inputs, {}, std::move(compute)});
  Operation* operation = &operations_.back();
  for (const Signature& output : outputs) {
    operation->outputs.push_back(NewTensor(output, operation, is_view));
  }
  return operation->outputs;
}

std::vector<Array> Graph::Run(const Tensors& targets, const Given& given) const {
  std::map<const Tensor*, Array> values;
  const std::function<const Array*(const Tensor*)> value_of = [&](const Tensor* tensor) {
    if (tensor == nullptr) return static_cast<const Array*>(nullptr);
    if (tensor->producer == nullptr) {
      Require(given.count(tensor) != 0, "feeds: nothing for a placeholder ", ToString(*tensor));
      return given.at(tensor);
    }
    if (values.count(tensor) == 0) {
      Inputs inputs;
      for (const Tensor* input : tensor->producer->inputs) inputs.push_back(value_of(input));
      std::vector<Array> outputs = tensor->producer->compute(inputs);
      for (size_t k = 0; k < outputs.size(); ++k) {
        values[tensor->producer->outputs[k]] = std::move(outputs[k]);
      }
    }
    return static_cast<const Array*>(&values.at(tensor));
  };
  std::vector<Array> results;
  for (const Tensor* target : targets) results.push_back(*value_of(target));
  return results;
}

}  // namespace fake
