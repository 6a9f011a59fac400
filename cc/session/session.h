// Session: a graph of layers with weights that do not change.
#ifndef TF_LSTM_OPS_SESSION_SESSION_H_
#define TF_LSTM_OPS_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "session/call_plan.h"
#include "session/error.h"
#include "session/graph.h"
#include "session/mapped_file.h"

namespace tf_lstm_ops::session {

// The steps of an input that count: a mask [B, T], not 0 where a step does, or
// lengths [B]; nothing: all do.
struct ValidSteps {
  const uint8_t* mask;
  const int32_t* lengths;

  bool all() const { return !mask && !lengths; }
};

// The inputs of a call.
struct SessionInputs {
  const Tensor* arrays;
  const Type* types;
  const ValidSteps* valid;
};

class Session {
 public:
  // `threads` of a call, from 1 to kMaxThreads.
  explicit Session(int threads);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens a file, or the bytes of one. Call one of them once. Errors: as in the
  // C header. Throw std::bad_alloc.
  bool Open(const char* path, Error* error);
  bool OpenData(const void* data, uint64_t size, Error* error);

  // The bytes of the file.
  const void* data() const { return data_; }
  uint64_t size() const { return size_; }
  int threads() const { return threads_; }
  const Graph& graph() const { return graph_; }

  // Elements of a step of input 0 or output 0, 0 where that depends on the
  // call. An output without time has one step.
  int64_t input_size() const;
  int64_t output_size() const;
  bool returns_sequence() const;
  // The arrays of the states: their shapes without B, and the floats of a row.
  const std::vector<Shape>& state_shapes() const { return state_shapes_; }
  int64_t state_size() const { return state_size_; }
  // Whether calls may have one array of type float as input, and one output.
  bool CheckIsSimple(Error* error) const;
  // The shape of input 0 with this batch and time.
  Shape InputShape(int64_t batch, int64_t time) const;

  // Sets the shapes of the outputs. Errors: InvalidArgument.
  bool Infer(const SessionInputs& inputs, Shape* outputs, Error* error) const;
  // Computes whole sequences. `outputs` have the shapes of Infer().
  // Thread-safe. After the first call of a shape and with the most valid steps,
  // calls allocate nothing. Error: InvalidArgument. Throws std::bad_alloc.
  bool Run(const SessionInputs& inputs, const Tensor* outputs,
           Error* error) const;

 private:
  struct Workspace;
  class Lease;

  void SetStates();

  bool CheckLengths(const SessionInputs& inputs, const CallPlan& plan,
                    Error* error) const;
  void RunNodes(const SessionInputs& inputs, const Tensor* outputs,
                Workspace* workspace) const;

  const int threads_;
  MappedFile file_;  // of Open
  const void* data_ = nullptr;
  uint64_t size_ = 0;
  Graph graph_;
  std::vector<Shape> state_shapes_;
  int64_t state_size_ = 0;
  // A list that only grows. It has no lock, which a forked child would find
  // locked for ever.
  mutable std::atomic<Workspace*> workspaces_{nullptr};
};

// Checks the values of inputs that layers use as indices. Error:
// InvalidArgument.
bool CheckValues(const Graph& graph, const Tensor* inputs, Error* error);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_SESSION_H_
