#include "backends/metal/lstm.h"

#include "core/gate_order.h"

namespace tf_lstm_ops::metal {
namespace {

MPSGraphRNNActivation Convert(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return MPSGraphRNNActivationRelu;
    case Activation::kTanh:
      return MPSGraphRNNActivationTanh;
    case Activation::kSigmoid:
      return MPSGraphRNNActivationSigmoid;
    case Activation::kHardSigmoidFifth:
      return MPSGraphRNNActivationHardSigmoid;
    default:  // kLinear; the op has no other function
      return MPSGraphRNNActivationNone;
  }
}

// `produceCell` is always set: with `training` alone the position of the cell states among the
// results is not documented.
MPSGraphLSTMDescriptor* MakeDescriptor(const LstmArguments& arguments, bool training) {
  const LstmActivations& activations = arguments.activations;
  MPSGraphLSTMDescriptor* d = [MPSGraphLSTMDescriptor descriptor];
  d.training = training ? YES : NO;
  d.produceCell = YES;
  d.forgetGateLast = arguments.forget_gate_last ? YES : NO;
  d.inputGateActivation = Convert(activations.gate[kGateI]);
  d.forgetGateActivation = Convert(activations.gate[kGateF]);
  d.cellGateActivation = Convert(activations.gate[kGateC]);
  d.outputGateActivation = Convert(activations.gate[kGateO]);
  d.activation = Convert(activations.state);
  return d;
}

// Absent arguments of MPSGraph's methods are nil.
MPSGraphTensor* OrNil(const Value& value) { return value.is_scalar() ? nil : value.tensor(); }

}  // namespace

LstmResults Lstm(const LstmArguments& arguments, bool training) {
  NSArray<MPSGraphTensor*>* results =
      [arguments.graph LSTMWithSourceTensor:arguments.source.tensor()
                            recurrentWeight:arguments.recurrent_weight.tensor()
                                inputWeight:OrNil(arguments.input_weight)
                                       bias:OrNil(arguments.bias)
                                  initState:OrNil(arguments.init_state)
                                   initCell:OrNil(arguments.init_cell)
                                       mask:OrNil(arguments.mask)
                                   peephole:OrNil(arguments.peephole)
                                 descriptor:MakeDescriptor(arguments, training)
                                       name:nil];
  const auto result = [&](NSUInteger n) {
    return Value(arguments.graph, [results objectAtIndex:n]);
  };
  return {result(0), result(1), training ? result(2) : Value()};
}

LstmGrads LstmGradients(const LstmArguments& arguments, const LstmResults& results,
                        const LstmResultGrads& result_grads) {
  MPSGraph* graph = arguments.graph;
  // From macOS 14.4 on the gradient is wrong if its sources are views of other tensors, in a graph
  // of three or more layers: github.com/pytorch/pytorch/issues/125803.
  const Value source = Identity(arguments.source);
  const Value z_state = Identity(results.z_state), cell = Identity(results.cell);
  const Extents sequence = cell.shape();
  const auto state_grad = [&](const Value& grad) {
    return Reshape(BroadcastTo(graph, grad, {sequence[1], sequence[2]}),
                   {1, sequence[1], sequence[2]});
  };
  NSArray<MPSGraphTensor*>* found =
      [graph LSTMGradientsWithSourceTensor:source.tensor()
                           recurrentWeight:arguments.recurrent_weight.tensor()
                            sourceGradient:BroadcastTo(graph, result_grads.h, sequence).tensor()
                                    zState:z_state.tensor()
                             cellOutputFwd:cell.tensor()
                             stateGradient:state_grad(result_grads.final_h).tensor()
                              cellGradient:state_grad(result_grads.final_cell).tensor()
                               inputWeight:OrNil(arguments.input_weight)
                                      bias:OrNil(arguments.bias)
                                 initState:OrNil(arguments.init_state)
                                  initCell:OrNil(arguments.init_cell)
                                      mask:OrNil(arguments.mask)
                                  peephole:OrNil(arguments.peephole)
                                descriptor:MakeDescriptor(arguments, true)
                                      name:nil];
  NSUInteger next = 0;  // the results skip arguments that are nil
  // In some releases the gradients of vectors have leading dimensions of 1. No gradient is taken to
  // have the shape of its argument.
  const auto take = [&](const Value& argument) {
    if (argument.is_scalar()) return Value();
    return Reshape(Value(graph, [found objectAtIndex:next++]), argument.shape());
  };
  LstmGrads grads;
  grads.source = take(source);
  grads.recurrent_weight = take(arguments.recurrent_weight);
  grads.input_weight = take(arguments.input_weight);
  grads.bias = take(arguments.bias);
  grads.peephole = take(arguments.peephole);
  grads.init_state = take(arguments.init_state);
  grads.init_cell = take(arguments.init_cell);
  return grads;
}

}  // namespace tf_lstm_ops::metal
