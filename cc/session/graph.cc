#include "session/graph.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "session/layers/layer_kinds.h"
#include "session/node_reader.h"

namespace tf_lstm_ops::session {
namespace {

bool FailNode(Error* error, size_t index, const char* what, uint64_t value) {
  return FailInLayer(error, kDataLoss, index, ": %s (%" PRIu64 ")", what,
                     value);
}

void AddInputs(Graph* graph) {
  const int count = graph->input_count();
  for (const bool is_mask : {false, true}) {
    for (int k = 0; k < count; ++k) {
      const InputRecord& input = graph->inputs[k];
      Value& value = graph->values.emplace_back();
      value.index = k;
      value.place = is_mask ? Place::kMask : Place::kInput;
      value.type = is_mask           ? Type::kMask
                   : input.type == 1 ? Type::kInt
                                     : Type::kFloat;
      Shape& shape = graph->shapes.emplace_back();
      shape.Append(input.batch == 0 ? kUnknown : input.batch);
      const int axes = is_mask ? 1 : static_cast<int>(input.rank) - 1;
      for (int axis = 0; axis < axes; ++axis) shape.Append(input.dims[axis]);
    }
  }
}

bool SetOperands(const FileTables& tables, const NodeRecord& record,
                 const LayerKind& kind, size_t index, const Graph& graph,
                 Node* node, Error* error) {
  const uint64_t first = record.first_operand, count = record.operand_count;
  if (count < static_cast<uint64_t>(kind.min_operands) ||
      count > static_cast<uint64_t>(kind.max_operands)) {
    return FailNode(error, index, "operand_count does not fit the layer",
                    count);
  }
  if (first + count > tables.operands.size()) {
    return FailNode(error, index, "first_operand is beyond the table", first);
  }
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t value = tables.operands[first + k];
    const bool is_mask = (kind.masks & MaskOperand(static_cast<int>(k))) != 0;
    if (value == kAbsent) {
      if (k > 0) {
        node->operands.push_back(kNone);
        continue;
      }
      return FailNode(error, index, "operand 0 is absent", value);
    }
    if (value >= graph.values.size()) {
      return FailNode(error, index, "an operand is not a value before it",
                      value);
    }
    const Type wanted = is_mask                     ? Type::kMask
                        : k == 0 && kind.reads_ints ? Type::kInt
                                                    : Type::kFloat;
    if (graph.values[value].type != wanted) {
      return FailNode(error, index, "an operand has another type", value);
    }
    node->operands.push_back(static_cast<int>(value));
  }
  return true;
}

bool AddNode(const FileTables& tables, const FileView& file, uint32_t index,
             Graph* graph, Error* error) {
  const NodeRecord& record = tables.nodes[index];
  const uint32_t number = record.layer.kind;
  if (number < 1 || number >= kLayerKindCount) {
    return FailInLayer(error, kDataLoss, index,
                       ": kind is %" PRIu32 ", must be from 1 to %" PRIu32,
                       number, kLayerKindCount - 1);
  }
  const LayerKind& kind = kLayerKinds[number];
  Node& node = graph->nodes.emplace_back();
  node.kind = kind.name;
  if (record.batch_axes < 1 || record.batch_axes > kMaxBatchAxes) {
    return FailNode(error, index, "batch_axes must be from 1 to 4",
                    record.batch_axes);
  }
  node.batch_axes = static_cast<int>(record.batch_axes);
  if (!SetOperands(tables, record, kind, index, *graph, &node, error)) {
    return false;
  }
  NodeReader reader(file, record, index, error);
  node.layer = kind.read(&reader);
  if (!reader.Finish()) return false;
  node.first_output = static_cast<int>(graph->values.size());
  node.output_count = node.layer->output_count();
  for (int k = 0; k < node.output_count; ++k) {
    graph->values.emplace_back().type = node.layer->output_type(k);
    graph->shapes.emplace_back();
  }
  return true;
}

bool CheckOutputs(const Graph& graph, Error* error) {
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const uint32_t value = graph.outputs[k].value;
    if (value >= graph.values.size() ||
        graph.values[value].type != Type::kFloat) {
      return Fail(error, kDataLoss,
                  "output %zu: value is %" PRIu32
                  ", must be that of an array of type f32",
                  k, value);
    }
  }
  return true;
}

// The shape of an output: the axes of the batch are those of the operand.
bool SplitBatch(const Shape& operand, int batch_axes, Shape* output,
                Error* error) {
  Shape split;
  for (int k = 0; k < batch_axes; ++k) split.Append(operand.dims[k]);
  if (batch_axes + output->rank - 1 > kMaxRank) {
    return Fail(error, error->code,
                "its output has %d axes, at most %d are possible",
                batch_axes + output->rank - 1, kMaxRank);
  }
  for (int k = 1; k < output->rank; ++k) split.Append(output->dims[k]);
  *output = split;
  return true;
}

bool InferNode(const Node& node, std::vector<Shape>* shapes, Error* error) {
  Shape in[kMaxOperands];
  const Shape& first = (*shapes)[node.operands[0]];
  const int count = static_cast<int>(node.operands.size());
  for (int k = 0; k < count; ++k) {
    if (node.operands[k] == kNone) continue;
    const Shape& shape = (*shapes)[node.operands[k]];
    if (shape.rank < node.batch_axes) {
      return Fail(error, error->code, "its input has %d axes, fewer than %d",
                  shape.rank, node.batch_axes);
    }
    for (int axis = 0; axis < node.batch_axes; ++axis) {
      if (shape.dims[axis] == first.dims[axis] ||
          shape.dims[axis] == kUnknown || first.dims[axis] == kUnknown) {
        continue;
      }
      return Fail(error, error->code,
                  "its inputs have sizes of %" PRId64 " and %" PRId64
                  " in axis %d, which must be equal",
                  first.dims[axis], shape.dims[axis], axis);
    }
    in[k] = JoinBatch(shape, node.batch_axes);
  }
  Shape out[kMaxOutputs];
  if (!node.layer->Infer(in, count, out, error)) return false;
  for (int k = 0; k < node.output_count; ++k) {
    if (!SplitBatch(first, node.batch_axes, &out[k], error)) return false;
    (*shapes)[node.first_output + k] = out[k];
  }
  return true;
}

}  // namespace

Shape JoinBatch(const Shape& shape, int batch_axes) {
  Shape joined;
  int64_t batch = 1;
  for (int k = 0; k < batch_axes && k < shape.rank; ++k) {
    // What does not fit is refused after all shapes are known.
    if (batch == kUnknown || shape.dims[k] == kUnknown ||
        __builtin_mul_overflow(batch, shape.dims[k], &batch)) {
      batch = kUnknown;
    }
  }
  joined.Append(batch);
  for (int k = batch_axes; k < shape.rank; ++k) joined.Append(shape.dims[k]);
  return joined;
}

bool FailIn(const Node& node, size_t index, Error* error) {
  const Error cause = *error;
  return FailInLayer(error, cause.code, index, " (%s): %s", node.kind,
                     cause.text);
}

int InferShapes(const Graph& graph, std::vector<Shape>* shapes, Error* error) {
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (InferNode(graph.nodes[k], shapes, error)) continue;
    FailIn(graph.nodes[k], k, error);
    return static_cast<int>(k);
  }
  return kNone;
}

bool ReadGraph(const void* data, uint64_t size, Graph* graph, Error* error) {
  FileTables tables;
  FileView file = {};
  if (!ReadTables(data, size, &tables, &file, error)) return false;
  graph->inputs = tables.inputs;
  graph->outputs = tables.outputs;
  graph->input_structure = tables.input_structure;
  graph->output_structure = tables.output_structure;
  AddInputs(graph);
  for (uint32_t k = 0; k < tables.nodes.size(); ++k) {
    if (!AddNode(tables, file, k, graph, error)) return false;
  }
  if (!CheckOutputs(*graph, error)) return false;
  error->code = kDataLoss;
  if (InferShapes(*graph, &graph->shapes, error) != kNone) return false;
  error->code = kOk;
  PlaceValues(graph);
  PlanStreaming(graph);
  return true;
}

namespace {

// The first node whose shapes do not fit blocks of `steps` steps, or kNone.
int FirstOfOtherSteps(const Graph& graph, int64_t steps) {
  std::vector<Shape> shapes = graph.shapes;
  for (int k = 0; k < 2 * graph.input_count(); ++k) {
    shapes[k].dims[0] = 1;
    shapes[k].dims[1] = steps;
  }
  Error error;
  return InferShapes(graph, &shapes, &error);
}

}  // namespace

void PlanStreaming(Graph* graph) {
  std::vector<Value>& values = graph->values;
  for (int k = 0; k < graph->input_count(); ++k) {
    const Shape& shape = graph->shapes[k];
    bool is_sequence = (shape.rank > 2 || values[k].type == Type::kInt) &&
                       graph->inputs[k].whole == 0;
    for (int axis = 2; axis < shape.rank; ++axis) {
      is_sequence = is_sequence && shape.dims[axis] != kUnknown;
    }
    values[k].is_sequence = is_sequence;
    values[graph->mask_of_input(k)].is_sequence = is_sequence;
    if (!is_sequence && graph->blocking_input == kNone) {
      graph->blocking_input = k;
    }
  }
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    Node& node = graph->nodes[n];
    int sequences = 0, others = 0;
    for (const int operand : node.operands) {
      if (operand == kNone) continue;
      (values[operand].is_sequence ? sequences : others) += 1;
    }
    node.is_behind_last_step = others > 0;
    const bool needs_sequence =
        node.batch_axes == 1 &&
        node.layer->streaming() == Streaming::kNeedsSequence;
    const bool blocks = sequences > 0 && (others > 0 || needs_sequence);
    if (blocks && graph->blocking_node == kNone) {
      graph->blocking_node = static_cast<int>(n);
    }
    for (int k = 0; k < node.output_count; ++k) {
      const bool is_state = node.batch_axes == 1 && k > 0 &&
                            node.layer->output_type(k) == Type::kFloat;
      const bool takes_last =
          node.batch_axes == 1 && node.layer->takes_last_step();
      values[node.first_output + k].is_sequence =
          !node.is_behind_last_step && !takes_last && !is_state;
    }
  }
  // A layer may have weights for each step.
  for (const int64_t steps : {1, 2}) {
    if (graph->can_stream()) {
      graph->blocking_node = FirstOfOtherSteps(*graph, steps);
    }
  }
}

}  // namespace tf_lstm_ops::session
