#include "session/recurrent_layer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "session/simple_layers.h"

namespace tf_lstm_ops::session {
namespace {

CellKind CellOf(const Layer& layer) {
  switch (layer.cell) {
    case kResetAfterGruCell:
      return CellKind::kGru;
    case kResetBeforeGruCell:
      return CellKind::kResetBeforeGru;
    case kLayerNormLstmCell:
      return CellKind::kLayerNormLstm;
    case kLayerNormGruCell:
      return CellKind::kLayerNormGru;
    case kSimpleRnnCell:
      return SimpleRnnCell(static_cast<Activation>(layer.activation));
    default:
      return CellKind::kLstm;
  }
}

KerasLayer KerasLayerOf(const Layer& layer) {
  KerasLayer keras;
  keras.cell = CellOf(layer);
  keras.options.activations =
      KerasActivations(static_cast<Activation>(layer.activation),
                       static_cast<Activation>(layer.recurrent_activation));
  keras.options.layer_norm.epsilon = static_cast<float>(layer.epsilon);
  keras.options.layer_norm.carries_normalized_state =
      layer.Has(kCarriesNormalizedState);
  keras.cell_clip = static_cast<float>(layer.number);
  keras.proj_clip = static_cast<float>(layer.proj_clip);
  keras.go_backwards = layer.directions == kBackwards;
  keras.zero_output_for_mask = layer.Has(kZeroOutputForMask);
  keras.return_sequences = layer.Has(kReturnsSequence);
  keras.in_order_of_computation = layer.Has(kInOrderOfComputation);
  return keras;
}

KerasWeights<const float> WeightsOf(const Layer& layer, int direction) {
  const float* const* arrays = layer.arrays[direction];
  KerasWeights<const float> weights;
  weights.kernel = arrays[kKernel];
  weights.recurrent_kernel = arrays[kRecurrentKernel];
  weights.bias = arrays[kBias];
  weights.recurrent_bias = arrays[kRecurrentBias];
  weights.peephole = arrays[kPeephole];
  weights.projection = arrays[kProjection];
  weights.input_gamma = arrays[kInputGamma];
  weights.recurrent_gamma = arrays[kRecurrentGamma];
  weights.state_gamma = arrays[kStateGamma];
  weights.state_beta = arrays[kStateBeta];
  return weights;
}

float* Floats(cpu::CallMemory* memory, int64_t count) {
  return static_cast<float*>(memory->Get(count * sizeof(float)));
}

}  // namespace

RecurrentLayer::RecurrentLayer(const Layer& layer)
    : layer_(layer), keras_(KerasLayerOf(layer)) {
  RnnConfig config = KerasConfig(keras_);
  config.input_size = layer.input_size;
  config.cell_size = layer.units;
  config.hidden_size = layer.hidden_size;
  for (int d = 0; d < layer.direction_count(); ++d) {
    directions_[d] = std::make_unique<cpu::FrozenLayer>(
        config, ViewsOf(WeightsOf(layer, d), config));
  }
}

void RecurrentLayer::RunDirections(const Sequences& in, int threads,
                                   RecurrentMemory* memory, float* h,
                                   int64_t h_stride,
                                   int64_t h_of_direction) const {
  const int count = layer_.direction_count();
  float* zeros = Floats(&memory->zeros, in.batch * layer_.units);
  std::memset(zeros, 0, in.batch * layer_.units * sizeof(float));
  std::array<const cpu::FrozenLayer*, kMaxDirections> layers = {};
  std::array<LayerForward<float>, kMaxDirections> passes;
  for (int d = 0; d < count; ++d) {
    LayerForward<float>& pass = passes[d];
    layers[d] = directions_[d].get();
    pass.sequence = KerasSequence(keras_, d, in.batch, in.time, in.mask);
    memory->valid[d].Assign(pass.sequence);
    pass.x = in.x;
    pass.x_stride = layer_.input_size;
    pass.h0 = {zeros, layer_.hidden_size};
    if (layer_.is_lstm()) pass.c0 = {zeros, layer_.units};
    pass.h = h + d * h_of_direction;
    pass.h_stride = h_stride;
    pass.fill = keras_.fill();
  }
  cpu::FrozenLayer::Run(layers.data(), passes.data(), memory->valid, count,
                        threads, &memory->call);
}

// Moves the last steps of h [directions, batch, time, P] to the output.
void RecurrentLayer::TakeLastSteps(const Sequences& in, float* h,
                                   float* y) const {
  const int64_t width = layer_.hidden_size, row = in.time * width;
  const float* last = h + row - width;
  if (layer_.direction_count() == kMaxDirections) {
    MergeDirections(layer_, last, last + in.batch * row, row, in.batch, y);
  } else {
    CopyLastSteps(h, in.batch, in.time, width, y, width);
  }
}

void RecurrentLayer::RunSequences(const Sequences& in, int threads,
                                  RecurrentMemory* memory, float* y) const {
  const int64_t width = layer_.hidden_size, rows = in.batch * in.time;
  const bool is_sequence = layer_.Has(kReturnsSequence);
  if (rows == 0) {
    if (!is_sequence) std::fill_n(y, in.batch * layer_.output_size(), 0.0F);
    return;
  }
  const int count = layer_.direction_count();
  if (is_sequence && (count == 1 || layer_.merge == kConcatenate)) {
    RunDirections(in, threads, memory, y, count * width, width);
    return;
  }
  float* h = Floats(&memory->h, count * rows * width);
  RunDirections(in, threads, memory, h, width, rows * width);
  if (is_sequence) {
    MergeDirections(layer_, h, h + rows * width, width, rows, y);
  } else {
    TakeLastSteps(in, h, y);
  }
}

void RecurrentLayer::RunSteps(const StreamSteps& in, const StreamStates& from,
                              const StreamStates& to,
                              const cpu::ForwardPlan& plan,
                              cpu::CallMemory* memory) const {
  LayerForward<float> pass;
  pass.sequence.batch = in.batch;
  pass.sequence.time = in.time;
  pass.sequence.steps = in.steps;
  pass.sequence.time_major = false;
  const PackedSequence valid(pass.sequence);
  pass.x = in.x;
  pass.x_stride = layer_.input_size;
  pass.h = in.y;
  pass.h_stride = layer_.hidden_size;
  pass.h0 = {from.h, layer_.hidden_size};
  pass.final_h = {to.h, layer_.hidden_size};
  if (layer_.is_lstm()) {
    pass.c0 = {from.c, layer_.units};
    pass.final_c = {to.c, layer_.units};
  }
  directions_[0]->RunSteps(plan, valid, &pass, memory);
}

}  // namespace tf_lstm_ops::session
