#include "graph.h"

#include <set>
#include <utility>

#include "misuse.h"

namespace fake {

std::string ToString(const Tensor& tensor) {
  return ToString(tensor.type) + ToString(tensor.shape);
}

Tensor* Graph::NewTensor(const Signature& signature, Operation* producer,
                         bool is_view) {
  for (int64_t dim : signature.shape) {
    Require(dim > 0, "a tensor of shape ", ToString(signature.shape),
            ": every size must be positive");
  }
  tensors_.push_back(
      {this, current_, producer, signature.type, signature.shape, is_view});
  return &tensors_.back();
}

Tensor* Graph::Placeholder(Type type, const Shape& shape) {
  Require(current_ == &top_, "a placeholder in the body of a loop");
  return NewTensor({type, shape}, nullptr, /*is_view=*/true);
}

void Graph::RequireUsable(const Tensor* tensor) const {
  Require(tensor != nullptr, "a tensor is nil");
  Require(tensor->graph == this,
          "a tensor of another graph: ", ToString(*tensor));
  const Scope* scope = current_;
  while (scope != nullptr && scope != tensor->scope) scope = scope->outer;
  Require(scope != nullptr,
          "a tensor of a loop's body outside of it: ", ToString(*tensor));
}

Tensors Graph::AddOperation(const Tensors& inputs,
                            const std::vector<Signature>& outputs,
                            Compute compute, bool is_view) {
  for (const Tensor* input : inputs) RequireUsable(input);
  operations_.push_back({current_, inputs, {}, std::move(compute)});
  Operation* operation = &operations_.back();
  for (const Signature& output : outputs) {
    operation->outputs.push_back(NewTensor(output, operation, is_view));
  }
  return operation->outputs;
}

Tensor* Graph::AddOne(const Tensors& inputs, const Signature& output,
                      Compute compute, bool is_view) {
  return AddOperation(inputs, {output}, std::move(compute), is_view)[0];
}

// --- loops -----------------------------------------------------------------

namespace {

void RequireSameSignatures(const Tensors& results, const Tensors& arguments) {
  Require(results.size() == arguments.size(), "a loop's body returns ",
          results.size(), " tensors for ", arguments.size(), " arguments");
  for (size_t k = 0; k < results.size(); ++k) {
    const std::string got = ToString(*results[k]);
    const std::string expected = ToString(*arguments[k]);
    Require(got == expected, "a loop's body returns ", got, " as argument ", k,
            ", which began as ", expected);
  }
}

}  // namespace

// The tensors from outside that the operations of a loop's body use.
Tensors Graph::Captures(const Scope* scope, const Tensors& results) const {
  std::set<Tensor*> found;
  const auto add = [&](const Tensors& used) {
    for (Tensor* tensor : used) {
      const Scope* s = tensor->scope;
      while (s != nullptr && s != scope) s = s->outer;
      if (s == nullptr) found.insert(tensor);
    }
  };
  for (const Operation& operation : operations_) {
    if (operation.scope == scope) add(operation.inputs);
  }
  add(results);
  return {found.begin(), found.end()};
}

Tensors Graph::Loop(Tensor* iterations, const Tensors& arguments,
                    const Body& body) {
  RequireUsable(iterations);
  Require(iterations->type == Type::kInt32 && SizeOf(iterations->shape) == 1,
          "forLoop: numberOfIterations must be one Int32 but is ",
          ToString(*iterations));
  for (const Tensor* argument : arguments) RequireUsable(argument);

  bodies_.push_back({current_});
  Scope* scope = current_ = &bodies_.back();
  Tensor* index = NewTensor({Type::kInt32, {}}, nullptr, true);
  Tensors inner;
  std::vector<Signature> signatures;
  for (const Tensor* argument : arguments) {
    signatures.push_back({argument->type, argument->shape});
    inner.push_back(NewTensor(signatures.back(), nullptr, true));
  }
  const Tensors results = body(index, inner);
  for (const Tensor* result : results) RequireUsable(result);
  current_ = scope->outer;
  RequireSameSignatures(results, arguments);

  const Tensors captures = Captures(scope, results);
  Tensors inputs = captures;
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  inputs.push_back(iterations);
  return AddOperation(
      inputs, signatures,
      [=](const std::vector<const Array*>& values) -> std::vector<Array> {
        Given given;
        for (size_t k = 0; k < captures.size(); ++k) {
          given[captures[k]] = values[k];
        }
        std::vector<Array> state;
        for (size_t k = 0; k < inner.size(); ++k) {
          state.push_back(*values[captures.size() + k]);
        }
        const auto count = static_cast<int64_t>(values.back()->values[0]);
        Array step(Type::kInt32, {});
        for (int64_t n = 0; n < count; ++n) {
          step.values[0] = static_cast<float>(n);
          given[index] = &step;
          for (size_t k = 0; k < inner.size(); ++k) given[inner[k]] = &state[k];
          state = RunScope(scope, results, given);
        }
        return state;
      });
}

// --- running ---------------------------------------------------------------

std::vector<Array> Graph::RunScope(const Scope* scope, const Tensors& targets,
                                   const Given& given) const {
  std::set<const Operation*> needed;
  const auto need = [&](const Tensors& tensors) {
    for (const Tensor* tensor : tensors) {
      if (tensor->scope == scope && given.count(tensor) == 0) {
        Require(tensor->producer != nullptr, "no value was given for ",
                ToString(*tensor));
        needed.insert(tensor->producer);
      }
    }
  };
  need(targets);
  for (auto at = operations_.rbegin(); at != operations_.rend(); ++at) {
    if (needed.count(&*at) != 0) need(at->inputs);
  }

  std::map<const Tensor*, Array> values;
  const auto value_of = [&](const Tensor* tensor) {
    const auto outside = given.find(tensor);
    return outside != given.end() ? outside->second : &values.at(tensor);
  };
  for (const Operation& operation : operations_) {
    if (needed.count(&operation) == 0) continue;
    std::vector<const Array*> inputs;
    for (const Tensor* input : operation.inputs) {
      inputs.push_back(value_of(input));
    }
    std::vector<Array> outputs = operation.compute(inputs);
    for (size_t k = 0; k < outputs.size(); ++k) {
      values[operation.outputs[k]] = std::move(outputs[k]);
    }
  }
  std::vector<Array> results;
  for (const Tensor* target : targets) results.push_back(*value_of(target));
  return results;
}

std::vector<Array> Graph::Run(const Tensors& targets,
                              const Given& given) const {
  return RunScope(&top_, targets, given);
}

Tensors Graph::PlaceholdersOf(const Tensors& targets) const {
  std::set<Tensor*> needed(targets.begin(), targets.end());
  for (auto at = operations_.rbegin(); at != operations_.rend(); ++at) {
    for (Tensor* output : at->outputs) {
      if (needed.count(output) == 0) continue;
      needed.insert(at->inputs.begin(), at->inputs.end());
    }
  }
  Tensors placeholders;
  for (Tensor* tensor : needed) {
    if (tensor->producer == nullptr) placeholders.push_back(tensor);
  }
  return placeholders;
}

}  // namespace fake
