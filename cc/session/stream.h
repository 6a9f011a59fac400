// Stream: computes a session step by step and keeps the states.
#ifndef TF_LSTM_OPS_SESSION_STREAM_H_
#define TF_LSTM_OPS_SESSION_STREAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/memory/scratch.h"
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
  bool Reset(const int64_t* rows, int64_t count, Error* error);
  bool GetState(float* state, int64_t count, Error* error);
  bool SetState(const float* state, int64_t count, Error* error);

 private:
  // The lengths of blocks are 1, 2, 4, ... steps.
  static constexpr int kBlockLengths = 6;
  static constexpr int64_t kMaxBlockSteps = int64_t{1} << (kBlockLengths - 1);

  // A call's claim to the stream.
  class Claim;
  // The states of a recurrent layer.
  struct LayerStates {
    StreamStates now;
    StreamStates next;  // written by a step, then exchanged with `now`
    int64_t h_size;     // P
    int64_t c_size;     // H of an LSTM, else 0
    const cpu::FrozenLayer* frozen;
    // By the binary logarithm of the number of steps.
    std::array<cpu::ForwardPlan, kBlockLengths> plans;
    RowSteps row;  // what FrozenLayer::RunRow reads and writes

    // Whether FrozenLayer::RunRow computes the layer.
    bool by_row() const { return plans[0].way == cpu::ForwardWay::kOneRow; }
  };

  // Assigns the arrays; see cpu::Scratch.
  void Place(cpu::Scratch<float>* memory);
  void PlanBlocks(LayerStates* states);
  void WarmUp();
  bool CheckRun(int64_t steps, const float* x, int64_t x_count, const float* y,
                int64_t y_count, Error* error) const;
  bool CheckState(const float* state, int64_t count, Error* error) const;
  void RunBlocks(int64_t steps, const float* x, float* y);
  void RunBlock(int64_t steps, const float* x, bool is_last, float* y);
  void RunRecurrent(size_t layer, int64_t steps, const float* x,
                    const bool* valid, float* y);
  void RunValid(size_t layer, int64_t time, int64_t steps, const float* x,
                float* y);
  void RunMasked(size_t layer, int64_t steps, const float* x, const bool* valid,
                 float* y);
  void ClearStates();

  const Session& session_;
  const int64_t batch_;
  const int64_t step_inputs_, step_outputs_;  // elements of a step's arrays
  const int64_t block_steps_;  // the most steps of a block, a power of two
  std::atomic_flag is_used_ = ATOMIC_FLAG_INIT;
  std::unique_ptr<AlignedBuffer> arrays_;
  std::vector<LayerStates> states_;  // by layer; empty of other layers
  // Blocks of the input and of the output, if the stream has several rows.
  float* x_block_ = nullptr;
  float* y_block_ = nullptr;
  float* rows_[2] = {};            // outputs of layers
  float* sequence_ = nullptr;      // of a layer that takes the last step
  float* scratch_ = nullptr;       // of RunRow
  std::unique_ptr<bool[]> valid_;  // of a block, if a layer masks
  cpu::CallMemory memory_;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_STREAM_H_
