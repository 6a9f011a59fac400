// RecurrentLayer: a recurrent layer of a session, in one or two directions.
#ifndef TF_LSTM_OPS_SESSION_RECURRENT_LAYER_H_
#define TF_LSTM_OPS_SESSION_RECURRENT_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/frozen_layer.h"
#include "core/keras_layer.h"
#include "session/file_format.h"

namespace tf_lstm_ops::session {

// Memory of a call, which is kept for later calls.
struct RecurrentMemory {
  cpu::CallMemory zeros;  // the initial states
  cpu::CallMemory h;      // of each direction, where it is not the output
  cpu::CallMemory call;
  PackedSequence valid[kMaxDirections];
};

// A batch of sequences. x: [batch, time, I]. mask: [batch, time]; null: all
// steps are valid.
struct Sequences {
  int64_t batch;
  int64_t time;
  const float* x;
  const bool* mask;
};

// Steps of a stream. x: [batch, time, I], of which the first `steps` are read;
// y: [batch, time, P], of which they are written.
struct StreamSteps {
  int64_t batch;
  int64_t time;
  int64_t steps;
  const float* x;
  float* y;
};

// States of a stream: h [B, P] and, of an LSTM, c [B, H], else null.
struct StreamStates {
  float* h;
  float* c;
};

class RecurrentLayer {
 public:
  // The arrays of `layer` must outlive the object. Throws std::bad_alloc.
  explicit RecurrentLayer(const Layer& layer);

  // Of the first direction.
  const cpu::FrozenLayer& frozen() const { return *directions_[0]; }

  // Computes whole sequences from zero states. y: [batch, time, O], or
  // [batch, O] without return_sequences. Throws std::bad_alloc.
  void RunSequences(const Sequences& in, int threads, RecurrentMemory* memory,
                    float* y) const;

  // Computes steps of a layer of one direction, forwards, from the states
  // `from`, by a plan of FrozenLayer::PlanSteps. Writes the new states to `to`.
  void RunSteps(const StreamSteps& in, const StreamStates& from,
                const StreamStates& to, const cpu::ForwardPlan& plan,
                cpu::CallMemory* memory) const;

 private:
  void RunDirections(const Sequences& in, int threads, RecurrentMemory* memory,
                     float* h, int64_t h_stride, int64_t h_of_direction) const;
  void TakeLastSteps(const Sequences& in, float* h, float* y) const;

  const Layer layer_;
  const KerasLayer keras_;
  std::unique_ptr<cpu::FrozenLayer> directions_[kMaxDirections];
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_RECURRENT_LAYER_H_
