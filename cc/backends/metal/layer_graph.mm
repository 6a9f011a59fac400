#include "backends/metal/layer_graph.h"

#include <algorithm>

#include "backends/metal/cell_steps.h"
#include "backends/metal/mpsgraph_lstm.h"
#include "backends/metal/products.h"
#include "backends/metal/step_loop.h"

namespace tf_lstm_ops::metal {
namespace {

// Returns `rows` with zeros where a step is not valid for a row. NaN in padding
// then does not reach a result.
Value Valid(const LayerGraph& layer, const Value& rows) { return IfPositive(layer.valid, rows, 0); }

// The part of the pre-activations that comes from x, [T, B, G*H].
Value InputPreActivations(const LayerGraph& layer) {
  const GraphWeights& w = layer.weights;
  Value z = Valid(layer, layer.x);
  if (!w.input.is_scalar()) {
    z = Product(z, w.input, layer.input_dropout);
  } else if (layer.config.x_gate_stride == 0 && !z.is_scalar()) {
    z = Concat(Values(layer.gates(), z), 2);
  }
  const int64_t width = layer.gates() * layer.config.cell_size;
  return BroadcastTo(layer.graph, z + w.input_bias,
                     {layer.sequence.time, layer.sequence.batch, width});
}

// The gradient with respect to x, from that of InputPreActivations.
Value InputGrad(const LayerGraph& layer, const Value& z_grad) {
  if (!layer.weights.input.is_scalar()) {
    return RowsGrad(z_grad, layer.weights.input, layer.input_dropout);
  }
  if (layer.config.x_gate_stride > 0 || z_grad.is_scalar()) return z_grad;
  Value sum;
  const int64_t cell = layer.config.cell_size;
  for (int g = 0; g < layer.gates(); ++g) {
    sum = sum + Slice(z_grad, 2, g * cell, cell);
  }
  return sum;
}

// The states [T, B, width] before all steps, from those after them and the
// initial state [B, width].
Value StatesBefore(const LayerGraph& layer, const Value& after, const Value& initial,
                   int64_t width) {
  const Sequence& sequence = layer.sequence;
  const Value first = AsSequence(BroadcastTo(layer.graph, initial, {sequence.batch, width}));
  if (sequence.time == 1) return first;
  const Value others = Slice(after, 0, sequence.reversed ? 1 : 0, sequence.time - 1);
  return sequence.reversed ? Concat({others, first}, 0) : Concat({first, others}, 0);
}

Value SumOfRows(const Value& rows) { return Sum(Sum(rows, 0), 0); }

// The passes over a layer direction of a cell of core/.
template <class Cell>
class CellPasses {
 public:
  explicit CellPasses(const LayerGraph& layer)
      : layer_(layer), config_(layer.config), steps_(layer) {}

  LayerGraphOutputs Forward() const {
    Extents widths(1 + Cell::kSavedCount, config_.cell_size);
    widths[0] = config_.hidden_size;
    const StepResult all =
        Loop(layer_.sequence.reversed)
            .Run({InputPreActivations(layer_), layer_.valid}, States(layer_.h0, layer_.c0), widths,
                 [this](const Values& inputs, const Values& state) {
                   return steps_.Forward(inputs[0], inputs[1], state);
                 });
    LayerGraphOutputs outputs;
    outputs.h = all.outputs[0];
    outputs.final_h = all.state[0];
    if (Cell::kHasCellState) outputs.final_c = all.state[1];
    std::copy(all.outputs.begin() + 1, all.outputs.end(), outputs.saved.begin());
    return outputs;
  }

  LayerGraphGrads Backward(const LayerGraphOutputs& outputs,
                           const LayerGraphOutputGrads& output_grads) const {
    const Value state_before = StateBefore(outputs);
    Values inputs = {layer_.valid, output_grads.h, outputs.h, state_before};
    for (const GraphActivations* saved : {&outputs.saved, &output_grads.saved}) {
      inputs.insert(inputs.end(), saved->begin(), saved->begin() + Cell::kSavedCount);
    }
    const int64_t gates = layer_.gates() * config_.cell_size;
    Extents widths(kSumsAll ? 1 : 2, gates);
    if (config_.projected()) {
      widths.insert(widths.end(), {config_.cell_size, config_.hidden_size});
    }
    const StepResult all = Loop(!layer_.sequence.reversed)
                               .Run(inputs, States(output_grads.final_h, output_grads.final_c),
                                    widths, [this](const Values& step_inputs, const Values& state) {
                                      return steps_.Backward(step_inputs, state);
                                    });
    return InputGrads(outputs, state_before, all);
  }

 private:
  static constexpr bool kSumsAll = CellSteps<Cell>::kSumsAll;

  StepLoop Loop(bool reversed) const { return {layer_.graph, layer_.sequence, reversed}; }

  Values States(const Value& h, const Value& c) const {
    Values states = {steps_.State(h, config_.hidden_size)};
    if (Cell::kHasCellState) states.push_back(steps_.State(c, config_.cell_size));
    return states;
  }

  // The state that the cell's equations read, before each step: cs or h.
  Value StateBefore(const LayerGraphOutputs& outputs) const {
    if constexpr (Cell::kHasCellState) {
      return StatesBefore(layer_, outputs.saved[kSavedCs], layer_.c0, config_.cell_size);
    }
    return HBefore(outputs);
  }
  Value HBefore(const LayerGraphOutputs& outputs) const {
    return StatesBefore(layer_, outputs.h, layer_.h0, config_.hidden_size);
  }

  LayerGraphGrads InputGrads(const LayerGraphOutputs& outputs, const Value& state_before,
                             const StepResult& all) const {
    const Value &z_grad = all.outputs[0], &recurrent_z_grad = all.outputs[kSumsAll ? 0 : 1];
    LayerGraphGrads grads;
    grads.z = z_grad;
    grads.x = InputGrad(layer_, z_grad);
    grads.h0 = all.state[0];
    if (Cell::kHasCellState) grads.c0 = all.state[1];
    GraphWeights& w = grads.weights;
    w.input_bias = SumOfRows(z_grad);
    w.recurrent_bias = SumOfRows(recurrent_z_grad);
    if (!layer_.weights.input.is_scalar()) {
      w.input = MatrixGrad(Valid(layer_, layer_.x), z_grad, layer_.input_dropout);
    }
    w.recurrent =
        MatrixGrad(Valid(layer_, HBefore(outputs)), recurrent_z_grad, layer_.recurrent_dropout);
    if (config_.projected()) {
      const size_t last = all.outputs.size() - 1;
      w.projection = MatrixGrad(all.outputs[last - 1], all.outputs[last], 1);
    }
    if constexpr (Cell::kHasPeephole) SetPeepholeGrads(outputs, state_before, z_grad, &w);
    return grads;
  }

  void SetPeepholeGrads(const LayerGraphOutputs& outputs, const Value& state_before,
                        const Value& z_grad, GraphWeights* grads) const {
    if (!layer_.weights.has_peephole()) return;
    for (int gate = 0; gate < Cell::kPreActivations; ++gate) {
      const Value& state = gate == Cell::kNewStatePeephole ? outputs.saved[kSavedCs] : state_before;
      grads->peephole[gate] = SumOfRows(steps_.Block(z_grad, gate) * Valid(layer_, state));
    }
  }

  const LayerGraph& layer_;
  const RnnConfig& config_;
  const CellSteps<Cell> steps_;
};

// Calls f with the passes of the layer's cell.
template <class F>
auto WithPasses(const LayerGraph& layer, const F& f) {
#define TF_LSTM_OPS_CASE(kind, Cell) \
  case CellKind::kind:               \
    return f(CellPasses<Cell<GraphMath>>(layer));
  switch (layer.config.cell) {
    TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE)
    default:  // a cell of the CPU backend only
      break;
  }
#undef TF_LSTM_OPS_CASE
  return f(CellPasses<LstmCell<GraphMath>>(layer));  // not reached
}

bool IsEmpty(const Sequence& sequence) { return sequence.time == 0 || sequence.batch == 0; }

}  // namespace

LayerGraphOutputs BuildForward(const LayerGraph& layer) {
  if (IsEmpty(layer.sequence)) return {0, layer.h0, layer.c0, {}};
  if (IsMpsGraphLstm(layer)) return BuildMpsGraphForward(layer);
  return WithPasses(layer, [](const auto& passes) { return passes.Forward(); });
}

LayerGraphGrads BuildBackward(const LayerGraph& layer, const LayerGraphOutputs& outputs,
                              const LayerGraphOutputGrads& output_grads) {
  if (IsEmpty(layer.sequence)) return {0, output_grads.final_h, output_grads.final_c, {}, 0};
  if (IsMpsGraphLstm(layer)) return BuildMpsGraphBackward(layer, outputs, output_grads);
  return WithPasses(layer,
                    [&](const auto& passes) { return passes.Backward(outputs, output_grads); });
}

Value HasOutput(const LayerGraph& layer, Fill fill) {
  if (layer.valid.is_scalar() || fill == Fill::kZero) return layer.valid;
  // A masked step repeats the output of an earlier valid step, if there is one.
  const StepLoop loop(layer.graph, layer.sequence, layer.sequence.reversed);
  const Value none = BroadcastTo(layer.graph, 0, {layer.sequence.batch, 1});
  return loop
      .Run({layer.valid}, {none}, {1},
           [](const Values& inputs, const Values& state) {
             const Value any = IfPositive(inputs[0], 1, state[0]);
             return StepResult{{any}, {any}};
           })
      .outputs[0];
}

}  // namespace tf_lstm_ops::metal
