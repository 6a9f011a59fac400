// PlaceValues: where the values of a call lie.

#include <algorithm>
#include <vector>

#include "session/graph.h"

namespace tf_lstm_ops::session {
namespace {

// How often each value is read.
std::vector<int> CountUses(const Graph& graph) {
  std::vector<int> uses(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const int operand : node.operands) {
      if (operand != kNone) ++uses[operand];
    }
  }
  for (const OutputRecord& output : graph.outputs) ++uses[output.value];
  return uses;
}

// The value in whose place each value lies: its own, or the output of the node
// that overwrites it.
std::vector<int> FindPlaces(const Graph& graph) {
  const std::vector<int> uses = CountUses(graph);
  const int first = 2 * graph.input_count();
  std::vector<int> places(graph.values.size());
  for (size_t k = 0; k < places.size(); ++k) places[k] = static_cast<int>(k);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const int operand = node->operands[0];
    if (node->layer->works_in_place() && operand >= first &&
        uses[operand] == 1) {
      places[operand] = places[node->first_output];
    }
  }
  return places;
}

// Gives slots to values that are read last at different nodes.
class Slots {
 public:
  // A slot until the node `last_use` is computed, for a value of node `now`.
  int Take(int now, int last_use) {
    for (size_t k = 0; k < free_at_.size(); ++k) {
      if (free_at_[k] < now) {
        free_at_[k] = last_use;
        return static_cast<int>(k);
      }
    }
    free_at_.push_back(last_use);
    return static_cast<int>(free_at_.size()) - 1;
  }
  int count() const { return static_cast<int>(free_at_.size()); }

 private:
  std::vector<int> free_at_;  // the last node that uses the slot
};

// The first of the nodes at the end that compute in the place of the node
// before them.
int FirstInPlace(const Graph& graph) {
  int n = static_cast<int>(graph.nodes.size()) - 1;
  while (n > 0 && graph.nodes[n].layer->works_in_place() &&
         graph.nodes[n].operands[0] == graph.nodes[n - 1].first_output) {
    --n;
  }
  return n;
}

// Lets nodes at the end write to the caller's outputs. Others do not: what is
// computed behind them may lack memory, and a failed call writes no output.
void PlaceOutputs(const std::vector<int>& places, Graph* graph) {
  const int first = FirstInPlace(*graph);
  std::vector<int> producer(graph->values.size(), kNone);  // by place
  for (int n = static_cast<int>(graph->nodes.size()) - 1; n >= 0; --n) {
    const Node& node = graph->nodes[n];
    for (int k = 0; k < node.output_count; ++k) {
      producer[places[node.first_output + k]] = n;
    }
  }
  for (int k = 0; k < graph->output_count(); ++k) {
    const int v = static_cast<int>(graph->outputs[k].value);
    Value& value = graph->values[v];
    if (value.place != Place::kSlot || producer[places[v]] < first) continue;
    value.place = Place::kOutput;
    value.index = k;
  }
}

}  // namespace

void PlaceValues(Graph* graph) {
  const std::vector<int> places = FindPlaces(*graph);
  PlaceOutputs(places, graph);
  std::vector<Value>& values = graph->values;
  std::vector<int> last_use(values.size(), kNone);  // by place
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    for (const int operand : graph->nodes[n].operands) {
      if (operand != kNone) last_use[places[operand]] = static_cast<int>(n);
    }
  }
  // What the caller gets is read at the end.
  const int end = static_cast<int>(graph->nodes.size());
  for (const OutputRecord& output : graph->outputs) {
    last_use[places[output.value]] = end;
  }
  Slots slots;
  std::vector<int> slot_of(values.size(), kNone);  // by place
  for (int n = 0; n < end; ++n) {
    const Node& node = graph->nodes[n];
    for (int k = 0; k < node.output_count; ++k) {
      Value& value = values[node.first_output + k];
      const int place = places[node.first_output + k];
      if (values[place].place == Place::kOutput) {
        value.place = Place::kOutput;
        value.index = values[place].index;
        continue;
      }
      int& slot = slot_of[place];
      if (slot == kNone) slot = slots.Take(n, std::max(last_use[place], n));
      value.index = slot;
    }
  }
  graph->slots = slots.count();
}

}  // namespace tf_lstm_ops::session
