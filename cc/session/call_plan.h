// CallPlan: the shapes and addresses of all values of a call of one shape.
#ifndef TF_LSTM_OPS_SESSION_CALL_PLAN_H_
#define TF_LSTM_OPS_SESSION_CALL_PLAN_H_

#include <cstdint>
#include <vector>

#include "session/graph.h"

namespace tf_lstm_ops::session {

// Arrays of a caller: inputs, then outputs.
struct CallArrays {
  const Tensor* inputs;
  const bool* const* masks;  // by input; null: no input has one
  const Tensor* outputs;
};

class CallPlan {
 public:
  // The graph must outlive the plan.
  explicit CallPlan(const Graph& graph);

  // Plans calls with inputs of these shapes. Does nothing if they are those of
  // the plan. Error: InvalidArgument. Throws std::bad_alloc.
  bool Plan(const Tensor* inputs, Error* error);

  const Shape& shape(int value) const { return shapes_[value]; }
  // The most elements of a value.
  int64_t most_elements() const;
  // Bytes of a slot.
  int64_t slot_bytes(int slot) const { return slot_bytes_[slot]; }
  void SetSlot(int slot, void* data) { slots_[slot] = data; }
  // Sets the addresses of values after Plan() and SetSlot().
  void SetArrays(const CallArrays& arrays);
  // Where a value lies.
  void* data(int value, const CallArrays& arrays) const;

  // Computes a node.
  void Run(size_t node, int threads, LayerMemory* memory) const;
  LayerCall CallOf(size_t node, int threads, LayerMemory* memory) const;

 private:
  void SetTensors();

  const Graph& graph_;
  bool is_planned_ = false;
  std::vector<Shape> shapes_;
  std::vector<int64_t> slot_bytes_;
  std::vector<void*> slots_;
  // The operands and outputs of all nodes, one after the other, and the values
  // that they are.
  std::vector<Tensor> tensors_;
  std::vector<int> tensor_values_;
  std::vector<size_t> first_tensor_;  // by node
};

// Checks inputs against the graph: number of axes, sizes and types. In a stream
// the first axis behind the batch may have any size. Error: InvalidArgument.
bool CheckInputs(const Graph& graph, const Tensor* inputs, const Type* types,
                 bool is_stream, Error* error);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_CALL_PLAN_H_
