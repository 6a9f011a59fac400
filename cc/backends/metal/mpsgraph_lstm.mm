#include "backends/metal/mpsgraph_lstm.h"

#include "backends/metal/gates.h"
#include "core/lstm_cell.h"

namespace tf_lstm_ops::metal {
namespace {

MPSGraphRNNActivation Convert(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return MPSGraphRNNActivationNone;
    case Activation::kRelu:
      return MPSGraphRNNActivationRelu;
    case Activation::kTanh:
      return MPSGraphRNNActivationTanh;
    case Activation::kSigmoid:
      return MPSGraphRNNActivationSigmoid;
    case Activation::kHardSigmoid:
      return MPSGraphRNNActivationHardSigmoid;
  }
  return MPSGraphRNNActivationNone;
}

bool HasOrder(const Layer& layer, const GateOrder& order) {
  return layer.config.gate_order.block == order.block;
}

// With training alone it is open where c stands among the results: both are
// always asked for.
MPSGraphLSTMDescriptor* MakeDescriptor(const Layer& layer) {
  const LstmActivations& activations = layer.config.activations;
  MPSGraphLSTMDescriptor* d = [MPSGraphLSTMDescriptor descriptor];
  d.reverse = layer.reversed ? YES : NO;
  d.training = YES;
  d.produceCell = YES;
  d.forgetGateLast = HasOrder(layer, kOrderICFO) ? YES : NO;
  d.inputGateActivation = Convert(activations.gate[kGateI]);
  d.forgetGateActivation = Convert(activations.gate[kGateF]);
  d.cellGateActivation = Convert(activations.gate[kGateC]);
  d.outputGateActivation = Convert(activations.gate[kGateO]);
  d.activation = Convert(activations.state);
  return d;
}

// A layer's tensors as MPSGraph takes them; nil where there are none.
struct Tensors {
  MPSGraphTensor *source, *recurrent, *input, *bias, *h0, *c0, *mask, *peephole;
};

MPSGraphTensor* OrNil(const Value& value) { return value.is_number() ? nil : value.tensor(); }

Tensors TensorsOf(const Layer& layer) {
  const Extents state = {layer.batch, layer.config.cell_size};
  const Weights& w = layer.weights;
  return {layer.x.tensor(),
          Transposed(w.recurrent).tensor(),
          OrNil(Transposed(w.input)),
          OrNil(w.input_bias + w.recurrent_bias),
          BroadcastTo(layer.graph, layer.h0, state).tensor(),
          BroadcastTo(layer.graph, layer.c0, state).tensor(),
          OrNil(layer.recurrent_dropout.is_number() ? layer.recurrent_dropout
                                                    : Reshape(layer.recurrent_dropout, state)),
          OrNil(JoinGates(w.peephole, 0, layer.config.gate_order))};
}

}  // namespace

bool IsMpsGraphLstm(const Layer& layer) {
  const RnnConfig& config = layer.config;
  const bool has_peephole = layer.weights.has_peephole();
  const bool one_mask = layer.recurrent_dropout.is_number() || layer.recurrent_dropout.dim(0) == 1;
  const bool adds_x = layer.weights.input.is_number();
  return IsLstm(config.cell) && !layer.exact_steps && layer.valid.is(1) && !layer.x.is_number() &&
         layer.input_dropout.is(1) && one_mask && (!adds_x || config.x_gate_stride > 0) &&
         !config.projected() && config.cell_clip <= 0 && config.forget_bias == 0 &&
         (!has_peephole || config.cell == CellKind::kCustomLstm) &&
         (HasOrder(layer, kOrderICFO) || HasOrder(layer, kOrderIFCO));
}

LayerOutputs MpsGraphForward(const Layer& layer) {
  const Tensors t = TensorsOf(layer);
  NSArray<MPSGraphTensor*>* results = [layer.graph LSTMWithSourceTensor:t.source
                                                        recurrentWeight:t.recurrent
                                                            inputWeight:t.input
                                                                   bias:t.bias
                                                              initState:t.h0
                                                               initCell:t.c0
                                                                   mask:t.mask
                                                               peephole:t.peephole
                                                             descriptor:MakeDescriptor(layer)
                                                                   name:nil];
  const auto result = [&](NSUInteger n) { return Value(layer.graph, [results objectAtIndex:n]); };
  const auto final_row = [&](const Value& rows) {
    const int64_t last = layer.reversed ? 0 : layer.time - 1;
    return Reshape(Slice(rows, 0, last, 1), {layer.batch, rows.dim(2)});
  };
  LayerOutputs outputs;
  outputs.h = result(0);
  outputs.steps[kSavedCs] = result(1);
  SetZState(result(2), layer.config.gate_order, &outputs.steps);
  outputs.final_h = final_row(outputs.h);
  outputs.final_c = final_row(outputs.steps[kSavedCs]);
  return outputs;
}

LayerGradients MpsGraphBackward(const Layer& layer, const LayerOutputs& outputs,
                                const LayerUpstream& upstream) {
  const Tensors t = TensorsOf(layer);
  const int64_t cell = layer.config.cell_size;
  const GateOrder& order = layer.config.gate_order;
  const auto of_state = [&](const Value& gradient) {
    const Value rows = BroadcastTo(layer.graph, gradient, {layer.batch, cell});
    return Reshape(rows, {1, layer.batch, cell}).tensor();
  };
  const Extents sequence = {layer.time, layer.batch, cell};
  NSArray<MPSGraphTensor*>* results = [layer.graph
      LSTMGradientsWithSourceTensor:t.source
                    recurrentWeight:t.recurrent
                     sourceGradient:BroadcastTo(layer.graph, upstream.h, sequence).tensor()
                             zState:ZState(outputs.steps, order).tensor()
                      cellOutputFwd:outputs.steps[kSavedCs].tensor()
                      stateGradient:of_state(upstream.final_h)
                       cellGradient:of_state(upstream.final_c)
                        inputWeight:t.input
                               bias:t.bias
                          initState:t.h0
                           initCell:t.c0
                               mask:t.mask
                           peephole:t.peephole
                         descriptor:MakeDescriptor(layer)
                               name:nil];
  NSUInteger next = 0;  // nil arguments have no gradient among the results
  const auto take = [&](MPSGraphTensor* argument) {
    return argument == nil ? Value() : Value(layer.graph, [results objectAtIndex:next++]);
  };
  LayerGradients g;
  g.x = take(t.source);
  g.weights.recurrent = Transposed(take(t.recurrent));
  g.weights.input = Transposed(take(t.input));
  // Some releases return vectors with leading ones.
  g.weights.input_bias = Reshape(take(t.bias), {4 * cell});
  g.weights.recurrent_bias = g.weights.input_bias;
  const Value peephole = Reshape(take(t.peephole), {4 * cell});
  for (int p = 0; p < kMaxPreActivations; ++p) {
    g.weights.peephole[p] = GateBlock(peephole, 0, kMaxPreActivations, order, p);
  }
  g.h0 = take(t.h0);
  g.c0 = take(t.c0);
  return g;
}

}  // namespace tf_lstm_ops::metal
