#include "session/recurrent_layer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/gate_order.h"
#include "session/simple_layers.h"

namespace tf_lstm_ops::session {
namespace {

CellKind KindOf(const Layer& layer) {
  switch (layer.cell) {
    case kResetAfterGruCell:
      return CellKind::kGru;
    case kResetBeforeGruCell:
      return CellKind::kResetBeforeGru;
    case kLayerNormLstmCell:
      return CellKind::kLayerNormLstm;
    case kLayerNormGruCell:
      return CellKind::kLayerNormGru;
    default:
      return layer.activation == kTanhFunction &&
                     layer.recurrent_activation == kSigmoidFunction
                 ? CellKind::kLstm
                 : CellKind::kActivationLstm;
  }
}

// As MakeConfig in dialects/keras/problem.h, so that the bits are those of the
// ops.
RnnConfig ConfigOf(const Layer& layer) {
  RnnConfig config;
  config.cell = KindOf(layer);
  LstmActivations& activations = config.options.activations;
  activations.gate.fill(static_cast<Activation>(layer.recurrent_activation));
  activations.gate[kGateC] = activations.state =
      static_cast<Activation>(layer.activation);
  config.options.layer_norm.epsilon = static_cast<float>(layer.epsilon);
  config.options.layer_norm.carries_normalized_state =
      layer.Has(kCarriesNormalizedState);
  config.input_size = layer.input_size;
  config.cell_size = layer.units;
  config.hidden_size = layer.hidden_size;
  config.gate_order = layer.is_lstm() ? kOrderIFCO : kOrderURN;
  config.cell_clip = static_cast<float>(layer.number);
  return config;
}

RnnWeights<const float> WeightsOf(const Layer& layer, int direction) {
  const float* const* arrays = layer.arrays[direction];
  const int gates = layer.gates();
  RnnWeights<const float> weights;
  weights.input = ByInput(arrays[kKernel], gates, layer.units);
  weights.recurrent = ByInput(arrays[kRecurrentKernel], gates, layer.units);
  if (arrays[kProjection]) {
    weights.projection = ByInput(arrays[kProjection], 1, layer.hidden_size);
  }
  weights.input_bias = arrays[kBias];
  weights.recurrent_bias = arrays[kRecurrentBias];
  if (const float* rows = arrays[kPeephole]) {
    weights.peephole[kGateI] = rows;
    weights.peephole[kGateF] = rows + layer.units;
    weights.peephole[kGateO] = rows + 2 * layer.units;
  }
  weights.input_scale = arrays[kInputGamma];
  weights.recurrent_scale = arrays[kRecurrentGamma];
  weights.state_scale = arrays[kStateGamma];
  weights.state_offset = arrays[kStateBeta];
  return weights;
}

// As MakeSequence in dialects/keras/problem.h.
Sequence SequenceOf(const Layer& layer, const Sequences& in, int direction) {
  Sequence sequence;
  sequence.batch = in.batch;
  sequence.time = sequence.steps = in.time;
  sequence.time_major = false;
  sequence.reversed = layer.directions == kBackwards || direction > 0;
  sequence.outputs_in_order =
      layer.Has(kOutputsInOrder) || !layer.Has(kReturnsSequence);
  sequence.mask = in.mask;
  return sequence;
}

float* Floats(cpu::CallMemory* memory, int64_t count) {
  return static_cast<float*>(memory->Get(count * sizeof(float)));
}

}  // namespace

RecurrentLayer::RecurrentLayer(const Layer& layer) : layer_(layer) {
  for (int d = 0; d < layer.direction_count(); ++d) {
    directions_[d] = std::make_unique<cpu::FrozenLayer>(ConfigOf(layer),
                                                        WeightsOf(layer, d));
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
    pass.sequence = SequenceOf(layer_, in, d);
    memory->valid[d].Assign(pass.sequence);
    pass.x = in.x;
    pass.x_stride = layer_.input_size;
    pass.h0 = {zeros, layer_.hidden_size};
    if (layer_.is_lstm()) pass.c0 = {zeros, layer_.units};
    pass.h = h + d * h_of_direction;
    pass.h_stride = h_stride;
    pass.fill = layer_.Has(kZeroOutputForMask) ? Fill::kZero : Fill::kPrevious;
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
    return;
  }
  for (int64_t b = 0; b < in.batch; ++b) {
    std::copy_n(last + b * row, width, y + b * width);
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
