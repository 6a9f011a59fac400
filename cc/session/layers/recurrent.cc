#include "session/layers/recurrent.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "session/layers/merge_directions.h"

namespace tf_lstm_ops::session {

RecurrentLayer::RecurrentLayer(const RecurrentFields& fields)
    : fields_(fields) {
  RnnConfig config = KerasConfig(fields.keras);
  config.input_size = fields.input_size;
  config.cell_size = fields.units;
  config.hidden_size = fields.hidden_size;
  for (int d = 0; d < fields.directions; ++d) {
    RnnWeights<const float> views = ViewsOf(fields.weights[d], config);
    views.input = fields.matrices[d].kernel;
    views.recurrent = fields.matrices[d].recurrent_kernel;
    views.projection = fields.matrices[d].projection;
    views.input.gate_stride = views.recurrent.gate_stride = fields.units;
    directions_[d] = std::make_unique<cpu::FrozenLayer>(config, views);
  }
}

int RecurrentLayer::output_count() const {
  return 1 + (fields_.returns_state ? state_count() : 0);
}

Streaming RecurrentLayer::streaming() const {
  return fields_.reads_backwards ? Streaming::kNeedsSequence
                                 : Streaming::kKeepsState;
}

Shape RecurrentLayer::state_shape(int k) const {
  const bool is_c = k % fields_.states_of_direction() == 1;
  Shape shape;
  shape.Append(is_c ? fields_.units : fields_.hidden_size);
  return shape;
}

const float* RecurrentLayer::initial_state(int k) const {
  const int kind = k % fields_.states_of_direction();
  const float* from = fields_.initial[kind];
  const int direction = k / fields_.states_of_direction();
  return from ? from + direction * state_shape(k).dims[0] : nullptr;
}

bool RecurrentLayer::Infer(const Shape* in, int in_count, Shape* out,
                           Error* error) const {
  if (!RequireRank(in[0], 3, error) ||
      !RequireSize("its input's last axis", in[0].dims[2], fields_.input_size,
                   error)) {
    return false;
  }
  if (in_count > 1 && in[1].rank > 0 &&
      (!RequireRank(in[1], 2, error) ||
       (in[0].dims[1] != kUnknown &&
        !RequireSize("its mask's time", in[1].dims[1], in[0].dims[1],
                     error)))) {
    return false;
  }
  if (in_count > 2 && in_count != 2 + state_count()) {
    return Fail(error, error->code, "it has %d initial states, must have %d",
                in_count - 2, state_count());
  }
  for (int k = 2; k < in_count; ++k) {
    if (in[k].rank == 0) {
      return Fail(error, error->code, "initial state %d is absent", k - 2);
    }
    if (!RequireRank(in[k], 2, error) ||
        !RequireSize("its initial state's last axis", in[k].dims[1],
                     state_shape(k - 2).dims[0], error)) {
      return false;
    }
  }
  out[0].Append(in[0].dims[0]);
  if (is_sequence()) out[0].Append(in[0].dims[1]);
  out[0].Append(fields_.output_size());
  for (int k = 1; k < output_count(); ++k) {
    out[k].Append(in[0].dims[0]);
    out[k].Append(state_shape(k - 1).dims[0]);
  }
  return true;
}

// Zeros or the initial states of the layer, [N, H] of each state. All zeros are
// the same ones.
float* RecurrentLayer::InitialStates(const LayerCall& call) const {
  const int64_t size = call.in[0].shape.dims[0] * fields_.units;
  if (!fields_.initial[0] && !fields_.initial[1]) {
    float* zeros = call.memory->Floats(0, size);
    std::memset(zeros, 0, size * sizeof(float));
    return zeros;
  }
  float* found = call.memory->Floats(0, state_count() * size);
  for (int k = 0; k < state_count(); ++k) {
    FillRows(initial_state(k), state_shape(k).dims[0], call.in[0].shape.dims[0],
             found + k * size);
  }
  return found;
}

// The states of a pass: operands or `initial`, and outputs or nothing.
void RecurrentLayer::SetStates(const LayerCall& call, int direction,
                               float* initial_states,
                               LayerForward<float>* pass) const {
  const int first = direction * fields_.states_of_direction();
  const bool has_own = fields_.initial[0] || fields_.initial[1];
  const int64_t size = call.in[0].shape.dims[0] * fields_.units;
  const auto initial = [&](int k) -> const float* {
    const int operand = 2 + first + k;
    if (operand < call.in_count) return call.in[operand].floats();
    return initial_states + (has_own ? (first + k) * size : 0);
  };
  const auto final_state = [&](int k) -> float* {
    return fields_.returns_state ? call.out[1 + first + k].floats() : nullptr;
  };
  pass->h0 = {initial(0), fields_.hidden_size};
  pass->final_h = {final_state(0), fields_.hidden_size};
  if (!fields_.is_lstm) return;
  pass->c0 = {initial(1), fields_.units};
  pass->final_c = {final_state(1), fields_.units};
}

void RecurrentLayer::RunDirections(const LayerCall& call, float* h,
                                   int64_t h_stride,
                                   int64_t h_of_direction) const {
  const int64_t batch = call.in[0].shape.dims[0],
                time = call.in[0].shape.dims[1];
  const int count = fields_.directions;
  float* initial = call.in_count <= 2 ? InitialStates(call) : nullptr;
  std::array<const cpu::FrozenLayer*, kMaxDirections> layers = {};
  std::array<LayerForward<float>, kMaxDirections> passes;
  const bool* mask = call.in_count > 1 ? call.in[1].mask() : nullptr;
  for (int d = 0; d < count; ++d) {
    LayerForward<float>& pass = passes[d];
    layers[d] = directions_[d].get();
    pass.sequence = KerasSequence(fields_.keras, d, batch, time, mask);
    call.memory->valid[d].Assign(pass.sequence);
    pass.x = call.in[0].floats();
    pass.x_stride = fields_.input_size;
    SetStates(call, d, initial, &pass);
    pass.h = h + d * h_of_direction;
    pass.h_stride = h_stride;
    pass.fill = fields_.keras.fill();
  }
  cpu::FrozenLayer::Run(layers.data(), passes.data(), call.memory->valid, count,
                        call.threads, &call.memory->engine);
}

// Outputs and states where there is no step, or no row.
void RecurrentLayer::WithoutSteps(const LayerCall& call) const {
  if (!is_sequence()) {
    std::fill_n(call.out[0].floats(), call.out[0].shape.Count(), 0.0F);
  }
  for (int k = 1; k < call.out_count; ++k) {
    const int64_t count = call.out[k].shape.Count();
    if (k + 1 < call.in_count) {
      std::copy_n(call.in[k + 1].floats(), count, call.out[k].floats());
    } else {
      FillRows(initial_state(k - 1), state_shape(k - 1).dims[0],
               call.out[k].shape.dims[0], call.out[k].floats());
    }
  }
}

void RecurrentLayer::Run(const LayerCall& call) const {
  const int64_t batch = call.in[0].shape.dims[0],
                time = call.in[0].shape.dims[1];
  const int64_t width = fields_.hidden_size, rows = batch * time;
  if (rows == 0) return WithoutSteps(call);
  float* y = call.out[0].floats();
  const int count = fields_.directions;
  if (is_sequence() && (count == 1 || fields_.merge == Merge::kConcatenate)) {
    return RunDirections(call, y, count * width, width);
  }
  float* h = call.memory->Floats(1, count * rows * width);
  RunDirections(call, h, width, rows * width);
  if (is_sequence()) {
    MergeDirections(fields_, h, h + rows * width, width, rows, y);
  } else if (count == kMaxDirections) {
    const float* last = h + (time - 1) * width;
    MergeDirections(fields_, last, last + rows * width, time * width, batch, y);
  } else {
    CopyLastSteps(h, batch, time, width, y, width);
  }
}

}  // namespace tf_lstm_ops::session
