#include "backends/metal/multi_layer_graph.h"

#include <map>
#include <vector>

#include "backends/metal/layer_graph.h"
#include "backends/metal/saved_activations.h"
#include "backends/metal/sequences.h"
#include "core/dropout.h"

namespace tf_lstm_ops::metal {
namespace {

// One tensor for each pseudo-layer.
struct PseudoLayerStates {
  Values h, c;
};

Value Flat(const Value& value) {
  int64_t size = 1;
  for (const int64_t extent : value.shape()) size *= extent;
  return Reshape(value, {size});
}

// What both passes have in common.
class Pass {
 public:
  Pass(const MultiLayerGraph& inputs, const Value& dropout_mask)
      : rnn_(inputs.rnn),
        model_(inputs.rnn.model),
        inputs_(inputs),
        dropout_mask_(dropout_mask),
        layout_(MakeReserveLayout(inputs.rnn, inputs.dropout)),
        input_h_(TimeMajor(inputs.input_h)),
        input_c_(TimeMajor(inputs.input_c)) {}

  const RnnModel& model() const { return model_; }
  const MultiLayerReserveLayout& layout() const { return layout_; }

  // Swaps the first two axes of a tensor that is not time-major.
  Value TimeMajor(const Value& value) const { return rnn_.time_major ? value : Transposed(value); }

  // The state [B, .] of a pseudo-layer, from time-major states [L*D, B, .].
  static Value State(const Value& states, int64_t pseudo_layer) {
    if (states.is_scalar()) return states;
    return Reshape(Slice(states, 0, pseudo_layer, 1), {states.dim(1), states.dim(2)});
  }
  // The inverse: joins states to the op's layout. 0 if there are no states.
  Value JoinStates(const Values& states) const {
    Values rows;
    for (const Value& state : states) {
      if (state.is_scalar()) return 0;
      rows.push_back(Reshape(state, {1, state.dim(0), state.dim(1)}));
    }
    return TimeMajor(Concat(rows, 0));
  }

  LayerGraph MakeLayer(int64_t layer, int64_t direction, const Value& x) const {
    const int64_t p = model_.PseudoLayer(layer, direction);
    LayerGraph made;
    made.graph = inputs_.graph;
    made.config = LayerConfig(model_, layer);
    made.sequence = GraphSequence(DirectionSequence(rnn_, direction, nullptr));
    made.weights = Weights(RegionsOf(rnn_, layer, direction));
    made.valid = inputs_.valid;
    made.x = x;
    made.h0 = State(input_h_, p);
    made.c0 = State(input_c_, p);
    return made;
  }

  // The output of an inner layer as the next layer reads it, or the gradient
  // with respect to it.
  Value ApplyDropout(int64_t layer, const Value& rows) const {
    if (dropout_mask_.is_scalar()) return rows;
    const Value mask = Reshape(Slice(dropout_mask_, 0, layer, 1), OutputShape());
    const DropoutMask rule(0, inputs_.dropout, 0, 0);
    return rows * IfPositive(mask, rule.scale(), 0);
  }

  Extents OutputShape() const { return {rnn_.time, rnn_.batch, model_.output_size()}; }

  // The output of a layer, in a reserve.
  Value SavedOutput(const Value& reserve, int64_t layer) const {
    return Reshape(Slice(reserve, 0, layout_.LayerOutput(layer), layout_.output_size()),
                   OutputShape());
  }

  // The outputs of a layer direction, in a reserve.
  LayerGraphOutputs SavedOutputs(const Value& reserve, int64_t layer, int64_t direction) const {
    const int64_t p = model_.PseudoLayer(layer, direction);
    LayerGraphOutputs outputs;
    outputs.h =
        Slice(SavedOutput(reserve, layer), 2, direction * model_.hidden_size, model_.hidden_size);
    outputs.saved = UnpackActivations(
        Slice(reserve, 0, layout_.Activations(p), layout_.activations_size()),
        LayerConfig(model_, layer), GraphSequence(DirectionSequence(rnn_, direction, nullptr)));
    return outputs;
  }

  // The gradients of all weights, by pseudo-layer, as one parameter buffer.
  Value JoinParams(const std::vector<GraphWeights>& grads) const {
    std::map<int64_t, Value> by_offset;
    const auto put = [&](const ParamsLayout::Region& region, const Value& value) {
      if (region.rows > 0) by_offset[region.offset] = Flat(value);
    };
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      for (int64_t d = 0; d < model_.directions; ++d) {
        const GraphWeights& w = grads[model_.PseudoLayer(layer, d)];
        const LayerRegions regions = RegionsOf(rnn_, layer, d);
        put(regions.input, Transposed(w.input));
        put(regions.recurrent, Transposed(w.recurrent));
        put(regions.projection, Transposed(w.projection));
        put(regions.input_bias, w.input_bias);
        put(regions.recurrent_bias, w.recurrent_bias);
      }
    }
    Values parts;
    for (const auto& part : by_offset) parts.push_back(part.second);
    return Concat(parts, 0);
  }

 private:
  GraphWeights Weights(const LayerRegions& regions) const {
    const auto vector = [&](const ParamsLayout::Region& region) {
      return Slice(inputs_.params, 0, region.offset, region.size());
    };
    const auto matrix = [&](const ParamsLayout::Region& region) {
      if (region.rows == 0) return Value();
      return Transposed(Reshape(vector(region), {region.rows, region.columns}));
    };
    GraphWeights w;
    w.input = matrix(regions.input);
    w.recurrent = matrix(regions.recurrent);
    w.projection = matrix(regions.projection);
    w.input_bias = vector(regions.input_bias);
    w.recurrent_bias = vector(regions.recurrent_bias);
    return w;
  }

  const MultiLayerRnn& rnn_;
  const RnnModel& model_;
  const MultiLayerGraph& inputs_;
  const Value dropout_mask_;
  const MultiLayerReserveLayout layout_;
  const Value input_h_, input_c_;  // time-major
};

// The parts of a reserve in the order of MultiLayerReserveLayout.
Value JoinReserve(const Values& activations, const Values& layer_outputs,
                  const Value& dropout_mask) {
  Values parts;
  for (const Values* values : {&activations, &layer_outputs}) {
    for (const Value& value : *values) {
      if (!value.is_scalar()) parts.push_back(Flat(value));
    }
  }
  if (!dropout_mask.is_scalar()) parts.push_back(Flat(dropout_mask));
  return Concat(parts, 0);
}

// Gradients by pseudo-layer.
struct BackwardGrads {
  PseudoLayerStates states;
  std::vector<GraphWeights> weights;
};

// The backward pass of all directions of a layer with the input x [T, B, .].
// Returns the gradient with respect to x. Sets the layer's elements of `grads`.
Value BuildLayerBackward(const Pass& pass, int64_t layer, const Value& reserve,
                         const LayerGraphOutputGrads& output_grads, const Value& x,
                         BackwardGrads* grads) {
  const RnnModel& model = pass.model();
  Value x_grad;
  for (int64_t d = 0; d < model.directions; ++d) {
    const int64_t p = model.PseudoLayer(layer, d);
    const LayerGraphOutputGrads of_direction = {
        Slice(output_grads.h, 2, d * model.hidden_size, model.hidden_size),
        Pass::State(output_grads.final_h, p),
        Pass::State(output_grads.final_c, p),
        {}};
    const LayerGraphGrads found = BuildBackward(pass.MakeLayer(layer, d, x),
                                                pass.SavedOutputs(reserve, layer, d), of_direction);
    x_grad = x_grad + found.x;
    grads->states.h[p] = found.h0;
    grads->states.c[p] = found.c0;
    grads->weights[p] = found.weights;
  }
  return x_grad;
}

}  // namespace

MultiLayerReserveLayout MakeReserveLayout(const MultiLayerRnn& rnn, float dropout) {
  ReserveContents contents;
  contents.rows = rnn.rows();
  contents.output_layers = rnn.model.layers;
  contents.has_dropout_mask = HasDropout(rnn, dropout);
  return {rnn.model, contents};
}

MultiLayerGraphOutputs BuildForward(const MultiLayerGraph& rnn, const Value& dropout_mask,
                                    bool saves_reserve) {
  if (rnn.rnn.rows() == 0) return {0, rnn.input_h, rnn.input_c, 0};
  const Pass pass(rnn, dropout_mask);
  const RnnModel& model = pass.model();
  PseudoLayerStates final;
  Values activations, layer_outputs;
  Value x = pass.TimeMajor(rnn.input);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    Values h;
    for (int64_t d = 0; d < model.directions; ++d) {
      LayerGraph made = pass.MakeLayer(layer, d, x);
      made.training = saves_reserve;
      const LayerGraphOutputs outputs = BuildForward(made);
      h.push_back(outputs.h);
      final.h.push_back(outputs.final_h);
      final.c.push_back(outputs.final_c);
      if (saves_reserve) activations.push_back(PackActivations(outputs.saved, model.cell));
    }
    layer_outputs.push_back(Concat(h, 2));
    if (layer < model.layers - 1) x = pass.ApplyDropout(layer, layer_outputs.back());
  }
  return {pass.TimeMajor(IfPositive(rnn.valid, layer_outputs.back(), 0)), pass.JoinStates(final.h),
          pass.JoinStates(final.c),
          saves_reserve ? JoinReserve(activations, layer_outputs, dropout_mask) : Value()};
}

MultiLayerGraphGrads BuildBackward(const MultiLayerGraph& rnn, const Value& reserve,
                                   const MultiLayerGraphOutputGrads& output_grads) {
  if (rnn.rnn.rows() == 0) return {0, output_grads.output_h, output_grads.output_c, 0};
  const RnnModel& model = rnn.rnn.model;
  const MultiLayerReserveLayout layout = MakeReserveLayout(rnn.rnn, rnn.dropout);
  const Value dropout_mask =
      layout.mask_size() == 0
          ? Value(1)
          : Reshape(Slice(reserve, 0, layout.DropoutMask(), layout.mask_size()),
                    {model.layers - 1, rnn.rnn.time, rnn.rnn.batch, model.output_size()});
  const Pass pass(rnn, dropout_mask);
  const auto count = static_cast<size_t>(model.pseudo_layers());
  BackwardGrads grads = {{Values(count), Values(count)}, std::vector<GraphWeights>(count)};
  LayerGraphOutputGrads of_layer = {IfPositive(rnn.valid, pass.TimeMajor(output_grads.output), 0),
                                    pass.TimeMajor(output_grads.output_h),
                                    pass.TimeMajor(output_grads.output_c),
                                    {}};
  for (int64_t layer = model.layers - 1; layer >= 0; --layer) {
    const Value x = layer == 0 ? pass.TimeMajor(rnn.input)
                               : pass.ApplyDropout(layer - 1, pass.SavedOutput(reserve, layer - 1));
    const Value x_grad = BuildLayerBackward(pass, layer, reserve, of_layer, x, &grads);
    of_layer.h = layer == 0 ? x_grad : pass.ApplyDropout(layer - 1, x_grad);
  }
  return {pass.TimeMajor(of_layer.h), pass.JoinStates(grads.states.h),
          pass.JoinStates(grads.states.c), pass.JoinParams(grads.weights)};
}

}  // namespace tf_lstm_ops::metal
