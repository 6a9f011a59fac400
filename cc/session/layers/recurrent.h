// RecurrentLayer: a recurrent layer of a session, in one or two directions.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_RECURRENT_H_
#define TF_LSTM_OPS_SESSION_LAYERS_RECURRENT_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/frozen_layer.h"
#include "core/keras_layer.h"
#include "session/file_format.h"
#include "session/layer.h"

namespace tf_lstm_ops::session {

enum class Merge : uint8_t { kNone, kConcatenate, kSum, kProduct, kAverage };

struct RecurrentFields {
  KerasLayer keras;
  int directions = 1;
  bool reads_backwards = false;  // in one of the directions
  Merge merge = Merge::kNone;
  bool returns_state = false;
  bool is_lstm = false;
  int64_t input_size = 0;
  int64_t units = 0;
  int64_t hidden_size = 0;
  KerasWeights<const float> weights[kMaxDirections];
  // The matrices of the weights, which `weights` does not have.
  struct Matrices {
    GateMatrices<const float> kernel, recurrent_kernel, projection;
  } matrices[kMaxDirections];
  // Initial h [directions, P] and c [directions, H], or null for zeros.
  const float* initial[2] = {};

  int states_of_direction() const { return is_lstm ? 2 : 1; }
  // Features of the output.
  int64_t output_size() const {
    return merge == Merge::kConcatenate ? 2 * hidden_size : hidden_size;
  }
};

class RecurrentLayer : public Layer {
 public:
  // Packs the weights, which must outlive the object. Throws std::bad_alloc.
  explicit RecurrentLayer(const RecurrentFields& fields);

  // Operands: x [N, T, I], mask, initial states. Outputs: y, final states.
  int output_count() const override;
  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const override;
  void Run(const LayerCall& call) const override;

  Streaming streaming() const override;
  const char* needs() const override { return "reads the sequence backwards"; }
  bool takes_last_step() const override { return !is_sequence(); }
  int state_count() const override {
    return fields_.directions * fields_.states_of_direction();
  }
  Shape state_shape(int k) const override;
  const float* initial_state(int k) const override;
  std::unique_ptr<StreamLayer> NewStreamLayer(int64_t batch,
                                              int threads) const override;

  const RecurrentFields& fields() const { return fields_; }
  bool is_sequence() const { return fields_.keras.return_sequences; }
  // Of the first direction.
  const cpu::FrozenLayer& frozen() const { return *directions_[0]; }

 private:
  struct Sequences;
  void RunDirections(const LayerCall& call, float* h, int64_t h_stride,
                     int64_t h_of_direction) const;
  float* InitialStates(const LayerCall& call) const;
  void SetStates(const LayerCall& call, int direction, float* initial_states,
                 LayerForward<float>* pass) const;
  void WithoutSteps(const LayerCall& call) const;

  const RecurrentFields fields_;
  std::unique_ptr<cpu::FrozenLayer> directions_[kMaxDirections];
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_RECURRENT_H_
