// Graph: the nodes of a session, the shapes of its values, and where in memory
// the values of a call lie.
#ifndef TF_LSTM_OPS_SESSION_GRAPH_H_
#define TF_LSTM_OPS_SESSION_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "session/error.h"
#include "session/file_format.h"
#include "session/layer.h"
#include "session/tensor.h"

namespace tf_lstm_ops::session {

constexpr int kNone = -1;

// A layer, and the values that it reads and writes.
struct Node {
  std::unique_ptr<Layer> layer;
  const char* kind = nullptr;  // for messages
  int batch_axes = 1;
  std::vector<int> operands;  // numbers of values, or kNone
  int first_output = 0;
  int output_count = 1;
  // Of a stream: whether an operand lies behind a last step. The node is then
  // computed for the last steps of a call only.
  bool is_behind_last_step = false;
};

// Where a value lies in a call.
enum class Place : uint8_t {
  kInput,   // in the caller's input `index`
  kMask,    // in the mask of input `index`, which may be null
  kOutput,  // in the caller's output `index`
  kSlot,    // in memory of the call
};

struct Value {
  Type type = Type::kFloat;
  Place place = Place::kSlot;
  int index = 0;
  // Of a stream: whether the first axis behind the batch is time.
  bool is_sequence = false;
};

struct Graph {
  std::vector<InputRecord> inputs;
  std::vector<OutputRecord> outputs;
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Shape> shapes;  // of the values, as far as the file fixes them
  int slots = 0;
  uint32_t input_structure = 0, output_structure = 0;
  // The first node that cannot be part of a stream, or the first input that has
  // no axis of time or no fixed sizes behind it; kNone.
  int blocking_node = kNone, blocking_input = kNone;

  int input_count() const { return static_cast<int>(inputs.size()); }
  int output_count() const { return static_cast<int>(outputs.size()); }
  int mask_of_input(int k) const { return input_count() + k; }
  bool can_stream() const {
    return blocking_node == kNone && blocking_input == kNone;
  }
};

// Makes the graph of a file, whose bytes must outlive it. Errors: DATA_LOSS,
// UNIMPLEMENTED. Throws std::bad_alloc.
bool ReadGraph(const void* data, uint64_t size, Graph* graph, Error* error);

// Puts "layer k (kind): " before the text of an error, and returns false.
bool FailIn(const Node& node, size_t index, Error* error);

// Sets `shapes` of all values from those of the inputs, which it contains.
// Dimensions may be unknown. Returns the first node that they do not fit, with
// an error of the code that *error has; else kNone.
int InferShapes(const Graph& graph, std::vector<Shape>* shapes, Error* error);

// The shape of an operand as its layer sees it: the axes of the batch are one.
Shape JoinBatch(const Shape& shape, int batch_axes);

// Decides where all values lie, so that few slots suffice.
void PlaceValues(Graph* graph);

// Finds which nodes can be part of a stream.
void PlanStreaming(Graph* graph);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_GRAPH_H_
