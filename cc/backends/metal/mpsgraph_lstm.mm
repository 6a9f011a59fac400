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

bool HasOrder(const LayerGraph& layer, const GateOrder& order) {
  return layer.config.gate_order.block == order.block;
}

// `produceCell` is always set: with `training` alone the position of c among the
// results is not documented.
MPSGraphLSTMDescriptor* MakeDescriptor(const LayerGraph& layer) {
  const LstmActivations& activations = layer.config.options.activations;
  MPSGraphLSTMDescriptor* d = [MPSGraphLSTMDescriptor descriptor];
  d.reverse = layer.sequence.reversed ? YES : NO;
  d.training = layer.training ? YES : NO;
  d.produceCell = YES;
  d.forgetGateLast = HasOrder(layer, kOrderICFO) ? YES : NO;
  d.inputGateActivation = Convert(activations.gate[kGateI]);
  d.forgetGateActivation = Convert(activations.gate[kGateF]);
  d.cellGateActivation = Convert(activations.gate[kGateC]);
  d.outputGateActivation = Convert(activations.gate[kGateO]);
  d.activation = Convert(activations.state);
  return d;
}

// The arguments of MPSGraph's methods. Absent ones are nil.
struct Tensors {
  MPSGraphTensor *source, *recurrent, *input, *bias, *h0, *c0, *mask, *peephole;
};

MPSGraphTensor* OrNil(const Value& value) { return value.is_scalar() ? nil : value.tensor(); }

Tensors TensorsOf(const LayerGraph& layer) {
  const Extents state = {layer.sequence.batch, layer.config.cell_size};
  const GraphWeights& w = layer.weights;
  return {layer.x.tensor(),
          Transposed(w.recurrent).tensor(),
          OrNil(Transposed(w.input)),
          OrNil(w.input_bias + w.recurrent_bias),
          BroadcastTo(layer.graph, layer.h0, state).tensor(),
          BroadcastTo(layer.graph, layer.c0, state).tensor(),
          OrNil(layer.recurrent_dropout.is_scalar() ? layer.recurrent_dropout
                                                    : Reshape(layer.recurrent_dropout, state)),
          OrNil(JoinGates(w.peephole, 0, layer.config.gate_order))};
}

}  // namespace

bool IsMpsGraphLstm(const LayerGraph& layer) {
  const RnnConfig& config = layer.config;
  const bool has_peephole = layer.weights.has_peephole();
  const bool one_mask = layer.recurrent_dropout.is_scalar() || layer.recurrent_dropout.dim(0) == 1;
  const bool adds_x = layer.weights.input.is_scalar();
  const bool has_cell = config.cell == CellKind::kLstm || config.cell == CellKind::kCustomLstm;
  return has_cell && !layer.exact_activations && layer.valid.is(1) && !layer.x.is_scalar() &&
         layer.input_dropout.is(1) && one_mask && (!adds_x || config.x_gate_stride > 0) &&
         !config.projected() && config.cell_clip <= 0 && config.forget_bias == 0 &&
         (!has_peephole || config.cell == CellKind::kCustomLstm) &&
         (HasOrder(layer, kOrderICFO) || HasOrder(layer, kOrderIFCO));
}

LayerGraphOutputs BuildMpsGraphForward(const LayerGraph& layer) {
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
  const auto final_state = [&](const Value& states) {
    const int64_t last = layer.sequence.reversed ? 0 : layer.sequence.time - 1;
    return Reshape(Slice(states, 0, last, 1), {layer.sequence.batch, states.dim(2)});
  };
  LayerGraphOutputs outputs;
  outputs.h = result(0);
  outputs.saved[kSavedCs] = result(1);
  if (layer.training) SplitZState(result(2), layer.config.gate_order, &outputs.saved);
  outputs.final_h = final_state(outputs.h);
  outputs.final_c = final_state(outputs.saved[kSavedCs]);
  return outputs;
}

LayerGraphGrads BuildMpsGraphBackward(const LayerGraph& layer, const LayerGraphOutputs& outputs,
                                      const LayerGraphOutputGrads& output_grads) {
  Tensors t = TensorsOf(layer);
  // From macOS 14.4 on the gradient is wrong if its sources are views of other tensors, in a graph
  // of three or more layers: github.com/pytorch/pytorch/issues/125803.
  t.source = Identity(layer.x).tensor();
  const Value z_state = Identity(JoinZState(outputs.saved, layer.config.gate_order));
  const Value cell_state = Identity(outputs.saved[kSavedCs]);
  const int64_t cell = layer.config.cell_size;
  const GateOrder& order = layer.config.gate_order;
  const auto state_grad = [&](const Value& grad) {
    const Value rows = BroadcastTo(layer.graph, grad, {layer.sequence.batch, cell});
    return Reshape(rows, {1, layer.sequence.batch, cell}).tensor();
  };
  const Extents sequence = {layer.sequence.time, layer.sequence.batch, cell};
  NSArray<MPSGraphTensor*>* results = [layer.graph
      LSTMGradientsWithSourceTensor:t.source
                    recurrentWeight:t.recurrent
                     sourceGradient:BroadcastTo(layer.graph, output_grads.h, sequence).tensor()
                             zState:z_state.tensor()
                      cellOutputFwd:cell_state.tensor()
                      stateGradient:state_grad(output_grads.final_h)
                       cellGradient:state_grad(output_grads.final_c)
                        inputWeight:t.input
                               bias:t.bias
                          initState:t.h0
                           initCell:t.c0
                               mask:t.mask
                           peephole:t.peephole
                         descriptor:MakeDescriptor(layer)
                               name:nil];
  NSUInteger next = 0;  // the results skip arguments that are nil
  // In some releases the gradients of vectors have leading dimensions of 1. No
  // gradient is taken to have the shape of its argument.
  const auto take = [&](MPSGraphTensor* argument) {
    if (argument == nil) return Value();
    const Value gradient(layer.graph, [results objectAtIndex:next++]);
    return Reshape(gradient, Value(layer.graph, argument).shape());
  };
  LayerGraphGrads grads;
  grads.x = take(t.source);
  grads.weights.recurrent = Transposed(take(t.recurrent));
  grads.weights.input = Transposed(take(t.input));
  grads.weights.input_bias = Reshape(take(t.bias), {4 * cell});
  grads.weights.recurrent_bias = grads.weights.input_bias;
  const Value peephole = Reshape(take(t.peephole), {4 * cell});
  for (int gate = 0; gate < kMaxPreActivations; ++gate) {
    grads.weights.peephole[gate] = GateBlock(peephole, 0, kMaxPreActivations, order, gate);
  }
  grads.h0 = take(t.h0);
  grads.c0 = take(t.c0);
  return grads;
}

}  // namespace tf_lstm_ops::metal
