#include "session/call_plan.h"

#include <algorithm>
#include <cinttypes>

namespace tf_lstm_ops::session {
namespace {

int64_t BytesOf(const Value& value, const Shape& shape) {
  const int64_t size = value.type == Type::kMask ? sizeof(bool) : sizeof(float);
  return shape.Count() * size;
}

}  // namespace

CallPlan::CallPlan(const Graph& graph)
    : graph_(graph),
      shapes_(graph.shapes),
      slot_bytes_(graph.slots),
      slots_(graph.slots) {
  for (const Node& node : graph.nodes) {
    first_tensor_.push_back(tensor_values_.size());
    tensor_values_.insert(tensor_values_.end(), node.operands.begin(),
                          node.operands.end());
    for (int k = 0; k < node.output_count; ++k) {
      tensor_values_.push_back(node.first_output + k);
    }
  }
  tensors_.resize(tensor_values_.size());
}

bool CallPlan::Plan(const Tensor* inputs, Error* error) {
  bool is_same = is_planned_;
  for (int k = 0; k < graph_.input_count() && is_same; ++k) {
    is_same = inputs[k].shape == shapes_[k];
  }
  if (is_same) return true;
  is_planned_ = false;
  for (int k = 0; k < graph_.input_count(); ++k) {
    shapes_[k] = inputs[k].shape;
    Shape& mask = shapes_[graph_.mask_of_input(k)];
    mask.dims[0] = inputs[k].shape.dims[0];
    mask.dims[1] = inputs[k].shape.dims[1];
  }
  error->code = kInvalidArgument;
  if (InferShapes(graph_, &shapes_, error) != kNone) return false;
  std::fill(slot_bytes_.begin(), slot_bytes_.end(), 0);
  for (size_t v = 0; v < shapes_.size(); ++v) {
    if (!shapes_[v].Fits()) {
      return Fail(error, kInvalidArgument,
                  "batch %" PRId64 " and time %" PRId64
                  " are too large for arrays",
                  shapes_[0].dims[0], shapes_[0].dims[1]);
    }
    const Value& value = graph_.values[v];
    if (value.place != Place::kSlot) continue;
    int64_t& bytes = slot_bytes_[value.index];
    bytes = std::max(bytes, BytesOf(value, shapes_[v]));
  }
  error->code = kOk;
  SetTensors();
  is_planned_ = true;
  return true;
}

void CallPlan::SetTensors() {
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const size_t end =
        n + 1 < first_tensor_.size() ? first_tensor_[n + 1] : tensors_.size();
    for (size_t k = first_tensor_[n]; k < end; ++k) {
      tensors_[k] = {};
      if (tensor_values_[k] == kNone) continue;
      tensors_[k].shape =
          JoinBatch(shapes_[tensor_values_[k]], graph_.nodes[n].batch_axes);
    }
  }
}

int64_t CallPlan::most_elements() const {
  int64_t most = 1;
  for (const Shape& shape : shapes_) most = std::max(most, shape.Count());
  return most;
}

void* CallPlan::data(int v, const CallArrays& arrays) const {
  const Value& value = graph_.values[v];
  switch (value.place) {
    case Place::kInput:
      return arrays.inputs[value.index].data;
    case Place::kMask:
      // Layers do not write to their operands.
      return arrays.masks ? const_cast<bool*>(arrays.masks[value.index])
                          : nullptr;
    case Place::kOutput:
      return arrays.outputs[value.index].data;
    default:
      return slots_[value.index];
  }
}

void CallPlan::SetArrays(const CallArrays& arrays) {
  for (size_t k = 0; k < tensors_.size(); ++k) {
    if (tensor_values_[k] != kNone) {
      tensors_[k].data = data(tensor_values_[k], arrays);
    }
  }
}

LayerCall CallPlan::CallOf(size_t n, int threads, LayerMemory* memory) const {
  const Node& node = graph_.nodes[n];
  const Tensor* in = tensors_.data() + first_tensor_[n];
  const int count = static_cast<int>(node.operands.size());
  return {in, count, in + count, node.output_count, threads, memory};
}

void CallPlan::Run(size_t n, int threads, LayerMemory* memory) const {
  graph_.nodes[n].layer->Run(CallOf(n, threads, memory));
}

bool CheckInputs(const Graph& graph, const Tensor* inputs, const Type* types,
                 bool is_stream, Error* error) {
  for (int k = 0; k < graph.input_count(); ++k) {
    const Shape& wanted = graph.shapes[k];
    const Shape& shape = inputs[k].shape;
    if (types[k] != graph.values[k].type) {
      return Fail(error, kInvalidArgument, "input %d has type %d, must have %d",
                  k, static_cast<int>(types[k]),
                  static_cast<int>(graph.values[k].type));
    }
    if (shape.rank != wanted.rank) {
      return Fail(error, kInvalidArgument, "input %d has %d axes, must have %d",
                  k, shape.rank, wanted.rank);
    }
    for (int axis = 0; axis < shape.rank; ++axis) {
      const bool is_any =
          wanted.dims[axis] == kUnknown || (is_stream && axis == 1);
      const int64_t size = shape.dims[axis];
      if (size < 0 || (!is_any && size != wanted.dims[axis])) {
        return Fail(error, kInvalidArgument,
                    "axis %d of input %d is %" PRId64 ", must be %s%" PRId64,
                    axis, k, size, is_any ? "at least " : "",
                    is_any ? 0 : wanted.dims[axis]);
      }
      if (axis == 0 && size != inputs[0].shape.dims[0]) {
        return Fail(error, kInvalidArgument,
                    "input %d has a batch of %" PRId64
                    ", that of input 0 is %" PRId64,
                    k, size, inputs[0].shape.dims[0]);
      }
      if (is_stream && axis == 1 && size != inputs[0].shape.dims[1]) {
        return Fail(error, kInvalidArgument,
                    "input %d has %" PRId64 " steps, input 0 has %" PRId64, k,
                    size, inputs[0].shape.dims[1]);
      }
    }
  }
  return true;
}

}  // namespace tf_lstm_ops::session
