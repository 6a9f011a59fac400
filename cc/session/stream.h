// Stream: computes a session step by step and keeps the states.
#ifndef TF_LSTM_OPS_SESSION_STREAM_H_
#define TF_LSTM_OPS_SESSION_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/memory/scratch.h"
#include "session/call_plan.h"
#include "session/error.h"
#include "session/session.h"

namespace tf_lstm_ops::session {

class Stream {
 public:
  // Whether a stream of `batch` rows may be opened. Error: InvalidArgument.
  static bool Check(const Session& session, int64_t batch, Error* error);
  // A stream of `batch` rows of a session that can stream. The session must
  // outlive it. Allocates the memory of all calls, and computes one call of
  // each size so that later ones allocate nothing. Throws std::bad_alloc.
  Stream(const Session& session, int64_t batch);

  // The functions of the C header. Errors: InvalidArgument, FailedPrecondition.
  bool Run(int64_t steps, const float* x, int64_t x_count, float* y,
           int64_t y_count, Error* error);
  bool RunArrays(const SessionInputs& inputs, const Tensor* outputs,
                 Error* error);
  bool Reset(const int64_t* rows, int64_t count, Error* error);
  bool GetState(float* state, int64_t count, Error* error);
  bool SetState(const float* state, int64_t count, Error* error);

 private:
  // A call's claim to the stream.
  class Claim;
  // An input or output of the session.
  struct Argument {
    int64_t step_elements;  // of all rows, or of an output without time
    bool is_sequence;
    float* block = nullptr;  // a block of it, if the stream has several rows
  };

  static void SetInputs(const Graph& graph, int64_t batch, int64_t steps,
                        std::vector<Tensor>* inputs);
  void MakeLayers();
  // Assigns the arrays; see cpu::Scratch.
  void Place(cpu::Scratch<float>* memory);
  void Allocate();
  void WarmUp();
  bool CheckRun(int64_t steps, const float* x, int64_t x_count, const float* y,
                int64_t y_count, Error* error) const;
  bool CheckArrays(const SessionInputs& inputs, const Tensor* outputs,
                   Error* error) const;
  bool CheckState(const float* state, int64_t count, Error* error) const;
  void RunSteps(int64_t steps, const Tensor* inputs, const Tensor* outputs);
  void CopyToBlocks(int64_t first, int64_t block, int64_t steps,
                    const Tensor* inputs, const Tensor* outputs);
  void CopyFromBlocks(int64_t first, int64_t block, int64_t steps,
                      const Tensor* outputs);
  void RunBlock(int64_t steps, bool is_last, const CallArrays& arrays);
  void ClearStates();
  template <class F>
  void ForEachState(const F& f) const;

  const Session& session_;
  const Graph& graph_;
  const int64_t batch_;
  int64_t block_steps_;  // the most steps of a block, a power of two
  std::atomic_flag is_used_ = ATOMIC_FLAG_INIT;
  std::unique_ptr<AlignedBuffer> arrays_;
  std::vector<std::unique_ptr<StreamLayer>> layers_;  // by node; may be null
  std::vector<CallPlan> plans_;  // by the length of a block
  std::vector<Argument> inputs_, outputs_;
  std::vector<float*> slots_;
  // The arguments of a block, and those of Run().
  std::vector<Tensor> block_inputs_, block_outputs_;
  std::vector<Tensor> simple_input_, simple_output_;
  LayerMemory memory_;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_STREAM_H_
