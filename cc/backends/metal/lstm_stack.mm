#include "backends/metal/lstm_stack.h"

#include <map>
#include <vector>

#include "backends/metal/lstm.h"
#include "core/dropout.h"

namespace tf_lstm_ops::metal {
namespace {

// The pre-activation of a gate that shall be 0 or 1 in padding. The logistic function of 60 is 1 in
// Float32, that of -60 is 9e-27. The product with the last valid h may add up to 40 to it. tanh(60)
// does not overflow even where it is computed from exp(120).
constexpr double kSaturated = 60;

// The weights of a direction of a layer. Matrices as in cuDNN's buffer: [4H, .].
struct Weights {
  Value input;      // [4H, I], or 0 with skip_input
  Value recurrent;  // [4H, H]
  Value bias;       // [4H], the sum of both biases
};

// A direction of a layer: what the forward pass made and the backward pass reads.
struct Direction {
  Value x;  // [T, B, I], zero in padding, in the order of the direction's steps
  Weights weights;
  LstmArguments arguments;
  LstmResults results;
};

Value Flat(const Value& rows) { return Reshape(rows, {rows.dim(0) * rows.dim(1), rows.dim(2)}); }
Value Unflat(const Value& rows, const Value& like) {
  return Reshape(rows, {like.dim(0), like.dim(1), rows.dim(1)});
}
Value AsVector(const Value& value) { return Reshape(value, {Count(value.shape())}); }
Value AsSteps(const Value& state) { return Reshape(state, {1, state.dim(0), state.dim(1)}); }
Value AsState(const Value& steps) { return Reshape(steps, {steps.dim(1), steps.dim(2)}); }

// From the op's layout to a time-major one, or back.
Value TimeMajor(const LstmStack& stack, const Value& value) {
  return stack.rnn.time_major ? value : Transposed(value);
}

// The state [B, H] of a pseudo-layer, from those of all in the op's layout.
Value StateOf(const LstmStack& stack, const Value& states, int64_t pseudo_layer) {
  const Value state = Slice(states, stack.rnn.time_major ? 0 : 1, pseudo_layer, 1);
  return Reshape(state, {stack.rnn.batch, stack.rnn.model.hidden_size});
}

Value JoinStates(const LstmStack& stack, const Values& states) {
  Values rows;
  for (const Value& state : states) rows.push_back(AsSteps(state));
  return TimeMajor(stack, Concat(rows, 0));
}

// Rows [T, B, .] in the order of a direction's steps, or back.
Value InOrder(const LstmStack& stack, int64_t direction, const Value& rows) {
  if (direction == 0) return rows;
  if (stack.padding.reversal.is_scalar()) return Reversed(rows);
  return Unflat(Gather(Flat(rows), stack.padding.reversal), rows);
}

Value OrZero(const LstmStack& stack, const Value& rows) {
  return IfPositive(stack.padding.valid, rows, 0);
}

// A state [B, .] of rows with a valid step, and another one of those without.
Value IfAnyStep(const LstmStack& stack, const Value& some, const Value& none) {
  const Value& valid = stack.padding.valid;
  if (valid.is_scalar()) return some;
  return IfPositive(AsState(Slice(valid, 0, 0, 1)), some, none);
}

Weights WeightsOf(const LstmStack& stack, int64_t layer, int64_t direction) {
  const LayerRegions regions = RegionsOf(stack.rnn, layer, direction);
  const auto vector = [&](const ParamsLayout::Region& region) {
    return Slice(stack.params, 0, region.offset, region.size());
  };
  const auto matrix = [&](const ParamsLayout::Region& region) {
    if (region.rows == 0) return Value();
    return Reshape(vector(region), {region.rows, region.columns});
  };
  return {matrix(regions.input), matrix(regions.recurrent),
          vector(regions.input_bias) + vector(regions.recurrent_bias)};
}

// The pre-activations' part from x, [T, B, 4H]. In padding they saturate the gates.
Value PreActivations(const LstmStack& stack, const Direction& direction) {
  const Value& weights = direction.weights.input;
  const Value product = weights.is_scalar()
                            ? Concat(Values(kMaxPreActivations, direction.x), 2)
                            : Unflat(MatMul(Flat(direction.x), Transposed(weights)), direction.x);
  const Value z = product + direction.weights.bias;
  if (stack.padding.valid.is_scalar()) return z;
  Values blocks(kMaxPreActivations);
  for (int gate = 0; gate < kMaxPreActivations; ++gate) {
    const double value = gate == kGateF ? kSaturated : gate == kGateC ? 0 : -kSaturated;
    const int block = CudnnGateOrder(CellKind::kLstm).block[gate];
    blocks[block] = BroadcastTo(stack.graph, value, {1, 1, stack.rnn.model.cell_size});
  }
  return IfPositive(stack.padding.valid, z, Concat(blocks, 2));
}

// Computes a direction of a layer from x [T, B, .], which is zero in padding.
Direction RunDirection(const LstmStack& stack, int64_t layer, int64_t d, const Value& x,
                       bool training) {
  const int64_t p = stack.rnn.model.PseudoLayer(layer, d);
  Direction direction;
  direction.x = InOrder(stack, d, x);
  direction.weights = WeightsOf(stack, layer, d);
  LstmArguments& arguments = direction.arguments;
  arguments.graph = stack.graph;
  arguments.source = PreActivations(stack, direction);
  arguments.recurrent_weight = direction.weights.recurrent;
  arguments.init_state = StateOf(stack, stack.input_h, p);
  arguments.init_cell = StateOf(stack, stack.input_c, p);
  direction.results = Lstm(arguments, training);
  return direction;
}

Value FinalH(const LstmStack& stack, const Direction& direction) {
  const Value& h = direction.results.h;
  const Value& last = stack.padding.last;
  if (last.is_scalar()) return AsState(Slice(h, 0, stack.rnn.time - 1, 1));
  return IfAnyStep(stack, Sum(last * h, 0), direction.arguments.init_state);
}

// The output of an inner layer as the next layer reads it, or the gradient with respect to it.
Value ApplyDropout(const LstmStack& stack, int64_t layer, const Value& rows) {
  if (stack.dropout_mask.is_scalar()) return rows;
  const Value mask = Reshape(Slice(stack.dropout_mask, 0, layer, 1), rows.shape());
  return rows * IfPositive(mask, DropoutMask(0, stack.dropout, 0, 0).scale(), 0);
}

// Computes all layers. Returns the output [T, B, D*H]. Adds each direction to `directions`.
Value RunLayers(const LstmStack& stack, bool training, std::vector<Direction>* directions) {
  const RnnModel& model = stack.rnn.model;
  Value x = OrZero(stack, TimeMajor(stack, stack.input));
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    Values h;
    for (int64_t d = 0; d < model.directions; ++d) {
      directions->push_back(RunDirection(stack, layer, d, x, training));
      h.push_back(InOrder(stack, d, OrZero(stack, directions->back().results.h)));
    }
    x = Concat(h, 2);
    if (layer < model.layers - 1) x = ApplyDropout(stack, layer, x);
  }
  return x;
}

struct DirectionGrads {
  Value x;  // [T, B, I], in the order of time
  Value h, c;
  Weights weights;
};

// `grads` are those of h [T, B, H], in the order of time and zero in padding, and of the final
// states.
DirectionGrads RunDirectionBackward(const LstmStack& stack, int64_t d, const Direction& direction,
                                    const LstmResultGrads& grads) {
  LstmResultGrads ordered = {InOrder(stack, d, grads.h), grads.final_h, grads.final_cell};
  const bool padded = !stack.padding.valid.is_scalar();
  if (padded) {
    ordered.h = ordered.h + stack.padding.last * AsSteps(grads.final_h);
    ordered.final_h = 0;
  }
  const LstmGrads found = LstmGradients(direction.arguments, direction.results, ordered);
  const Value z = Flat(OrZero(stack, found.source));
  DirectionGrads result;
  result.h = found.init_state;
  if (padded) result.h = result.h + IfAnyStep(stack, 0, grads.final_h);
  result.c = found.init_cell;
  result.weights.recurrent = found.recurrent_weight;
  result.weights.bias = Sum(z, 0);
  Value x;
  if (direction.weights.input.is_scalar()) {
    const int64_t cell = stack.rnn.model.cell_size;
    for (int gate = 0; gate < kMaxPreActivations; ++gate) x = x + Slice(z, 1, gate * cell, cell);
  } else {
    x = MatMul(z, direction.weights.input);
    result.weights.input = MatMul(Transposed(z), Flat(direction.x));
  }
  result.x = InOrder(stack, d, Unflat(x, direction.x));
  return result;
}

// The gradients of all weights, by pseudo-layer, as one parameter buffer.
Value JoinParams(const LstmStack& stack, const std::vector<DirectionGrads>& grads) {
  const RnnModel& model = stack.rnn.model;
  std::map<int64_t, Value> by_offset;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    for (int64_t d = 0; d < model.directions; ++d) {
      const Weights& w = grads[model.PseudoLayer(layer, d)].weights;
      const LayerRegions regions = RegionsOf(stack.rnn, layer, d);
      if (regions.input.rows > 0) by_offset[regions.input.offset] = AsVector(w.input);
      by_offset[regions.recurrent.offset] = AsVector(w.recurrent);
      by_offset[regions.input_bias.offset] = w.bias;
      by_offset[regions.recurrent_bias.offset] = w.bias;
    }
  }
  Values parts;
  for (const auto& part : by_offset) parts.push_back(part.second);
  return Concat(parts, 0);
}

}  // namespace

LstmStackResults BuildForward(const LstmStack& stack) {
  if (stack.rnn.rows() == 0) return {0, stack.input_h, stack.input_c};
  std::vector<Direction> directions;
  const Value output = RunLayers(stack, false, &directions);
  Values h, c;
  for (const Direction& direction : directions) {
    h.push_back(FinalH(stack, direction));
    c.push_back(AsState(Slice(direction.results.cell, 0, stack.rnn.time - 1, 1)));
  }
  return {TimeMajor(stack, output), JoinStates(stack, h), JoinStates(stack, c)};
}

LstmStackGrads BuildBackward(const LstmStack& stack, const LstmStackResults& result_grads) {
  const auto& [output_grad, h_grad, c_grad] = result_grads;
  if (stack.rnn.rows() == 0) return {0, h_grad, c_grad, 0};
  const RnnModel& model = stack.rnn.model;
  std::vector<Direction> directions;
  RunLayers(stack, true, &directions);
  std::vector<DirectionGrads> grads(directions.size());
  Value rows_grad = OrZero(stack, TimeMajor(stack, output_grad));
  for (int64_t layer = model.layers - 1; layer >= 0; --layer) {
    Value x_grad;
    for (int64_t d = 0; d < model.directions; ++d) {
      const int64_t p = model.PseudoLayer(layer, d);
      const LstmResultGrads of_direction = {
          Slice(rows_grad, 2, d * model.hidden_size, model.hidden_size), StateOf(stack, h_grad, p),
          StateOf(stack, c_grad, p)};
      grads[p] = RunDirectionBackward(stack, d, directions[p], of_direction);
      x_grad = x_grad + grads[p].x;
    }
    rows_grad = layer == 0 ? x_grad : ApplyDropout(stack, layer - 1, x_grad);
  }
  Values h, c;
  for (const DirectionGrads& of_direction : grads) {
    h.push_back(of_direction.h);
    c.push_back(of_direction.c);
  }
  return {TimeMajor(stack, rows_grad), JoinStates(stack, h), JoinStates(stack, c),
          JoinParams(stack, grads)};
}

}  // namespace tf_lstm_ops::metal
