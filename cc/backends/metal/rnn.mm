#include "backends/metal/rnn.h"

#include <algorithm>

#include "backends/metal/gates.h"
#include "backends/metal/mpsgraph_lstm.h"
#include "backends/metal/products.h"
#include "backends/metal/steps.h"
#include "core/custom_lstm_cell.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/vanilla_rnn_cell.h"

namespace tf_lstm_ops::metal {
namespace {

// Rows of the steps that rows of the batch take part in, else zero: what padding
// holds, NaN even, reaches nothing.
Value Valid(const Layer& layer, const Value& rows) { return IfPositive(layer.valid, rows, 0); }

// What the input gives to the pre-activations, [T,B,G*H].
Value FromInput(const Layer& layer) {
  const Weights& w = layer.weights;
  Value z = Valid(layer, layer.x);
  if (!w.input.is_number()) {
    z = Product(z, w.input, layer.input_dropout);
  } else if (layer.config.x_gate_stride == 0 && !z.is_number()) {
    z = Concat(Values(layer.gates(), z), 2);
  }
  const int64_t width = layer.gates() * layer.config.cell_size;
  return BroadcastTo(layer.graph, z + w.input_bias, {layer.time, layer.batch, width});
}

// The gradient with respect to x, from that of FromInput.
Value InputGradient(const Layer& layer, const Value& dz) {
  if (!layer.weights.input.is_number()) {
    return RowsGradient(dz, layer.weights.input, layer.input_dropout);
  }
  if (layer.config.x_gate_stride > 0 || dz.is_number()) return dz;
  Value sum;
  const int64_t cell = layer.config.cell_size;
  for (int g = 0; g < layer.gates(); ++g) {
    sum = sum + Slice(dz, 2, g * cell, cell);
  }
  return sum;
}

// [B,.] as [1,B,.], and back.
Value AsSequence(const Value& rows) {
  if (rows.is_number()) return rows;
  return Reshape(rows, {1, rows.dim(0), rows.dim(1)});
}
Value AsRows(const Value& sequence) {
  if (sequence.is_number()) return sequence;
  return Reshape(sequence, {sequence.dim(1), sequence.dim(2)});
}

// The states [T,B,width] before all steps, from those after them and the initial
// one, [B,width].
Value Before(const Layer& layer, const Value& after, const Value& initial, int64_t width) {
  const Value first = AsSequence(BroadcastTo(layer.graph, initial, {layer.batch, width}));
  if (layer.time == 1) return first;
  const Value others = Slice(after, 0, layer.reversed ? 1 : 0, layer.time - 1);
  return layer.reversed ? Concat({others, first}, 0) : Concat({first, others}, 0);
}

Value SumOfRows(const Value& rows) { return Sum(Sum(rows, 0), 0); }

// The passes over a layer of some cell of core/.
template <class Cell>
class Passes {
 public:
  explicit Passes(const Layer& layer) : layer_(layer), clip_(layer.config.cell_clip) {}

  LayerOutputs Forward() const {
    const RnnConfig& config = layer_.config;
    Values state = {State(layer_.h0, config.hidden_size)};
    if (Cell::kHasCellState) state.push_back(State(layer_.c0, config.cell_size));
    Extents widths(1 + Cell::kSavedCount, config.cell_size);
    widths[0] = config.hidden_size;
    const Stepped all = AllSteps(layer_.reversed)
                            .Run({FromInput(layer_), layer_.valid}, state, widths,
                                 [this](const Values& rows, const Values& s) {
                                   return ForwardStep(rows[0], rows[1], s);
                                 });
    LayerOutputs outputs;
    outputs.h = all.rows[0];
    outputs.final_h = all.state[0];
    if (Cell::kHasCellState) outputs.final_c = all.state[1];
    std::copy(all.rows.begin() + 1, all.rows.end(), outputs.steps.begin());
    return outputs;
  }

  LayerGradients Backward(const LayerOutputs& outputs, const LayerUpstream& upstream) const {
    const RnnConfig& config = layer_.config;
    Values state = {State(upstream.final_h, config.hidden_size)};
    if (Cell::kHasCellState) {
      state.push_back(State(upstream.final_c, config.cell_size));
    }
    const Value own_before = OwnBefore(outputs);
    Values sequences = {layer_.valid, upstream.h, outputs.h, own_before};
    for (const StepValues* steps : {&outputs.steps, &upstream.steps}) {
      sequences.insert(sequences.end(), steps->begin(), steps->begin() + Cell::kSavedCount);
    }
    const int64_t gates = layer_.gates() * config.cell_size;
    Extents widths = {gates};
    if (!kAllFromBoth) widths.push_back(gates);
    if (config.projected()) {
      widths.insert(widths.end(), {config.cell_size, config.hidden_size});
    }
    const Stepped all =
        AllSteps(!layer_.reversed)
            .Run(sequences, state, widths,
                 [this](const Values& rows, const Values& s) { return BackwardStep(rows, s); });
    return Gradients(outputs, own_before, all);
  }

 private:
  using Outputs = typename Cell::Outputs;
  // Every part of the pre-activations is a sum over input and previous output.
  static constexpr bool kAllFromBoth = Cell::kRecurrentPreActivations == Cell::kPreActivations;

  Value State(const Value& rows, int64_t width) const {
    return BroadcastTo(layer_.graph, rows, {layer_.batch, width});
  }

  Steps AllSteps(bool reversed) const {
    return {layer_.graph, layer_.time, layer_.batch, reversed};
  }

  typename Cell::Parameters Parameters() const {
    if constexpr (Cell::kHasPeephole) {
      const Weights& w = layer_.weights;
      return {w.has_peephole() ? w.peephole.data() : nullptr,
              layer_.config.cell_clip > 0 ? &clip_ : nullptr, &layer_.config.activations};
    } else {
      return {};
    }
  }

  Value Block(const Value& gates, int part) const {
    return GateBlock(gates, static_cast<int>(gates.shape().size()) - 1, layer_.gates(),
                     layer_.config.gate_order, part);
  }

  // The pre-activations of a step by part, from the input's and the previous
  // output's share, [B,G*H].
  void SetParts(const Value& from_input, const Value& from_h, Value (&z)[Cell::kPreActivations]) const {
    const Value sum = kAllFromBoth ? from_input + from_h : Value();
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      if (kAllFromBoth) {
        z[p] = Block(sum, p);
        continue;
      }
      if (p < Cell::kInputPreActivations) z[p] = Block(from_input, p);
      if (p >= Cell::kFirstRecurrent) z[p] = z[p] + Block(from_h, p);
    }
    if (Cell::kHasForgetBias) {
      z[kGateF] = z[kGateF] + Value(layer_.config.forget_bias);
    }
  }

  // [B,G*H] from values of the parts [first, first + count).
  Value Joined(const Value (&z)[Cell::kPreActivations], int first, int count) const {
    Values blocks(layer_.gates());
    for (int p = first; p < first + count; ++p) {
      blocks[layer_.config.gate_order.block[p]] = State(z[p], layer_.config.cell_size);
    }
    return Concat(blocks, 1);
  }

  Stepped ForwardStep(const Value& from_input, const Value& valid, const Values& state) const {
    const Weights& w = layer_.weights;
    const Value& h = state[0];
    const Value from_h =
        AsRows(Product(AsSequence(h), w.recurrent, layer_.recurrent_dropout)) + w.recurrent_bias;
    Value z[Cell::kPreActivations];
    SetParts(from_input, from_h, z);
    Outputs y = Cell::Forward(z, state.back(), Parameters());
    if (layer_.config.projected()) y.h = MatMul(y.h, w.projection);
    Stepped after;
    after.state = {IfPositive(valid, y.h, h)};
    if constexpr (Cell::kHasCellState) {
      y.*Cell::kState = IfPositive(valid, y.*Cell::kState, state[1]);
      after.state.push_back(y.*Cell::kState);
    }
    after.rows = {after.state[0]};
    if constexpr (Cell::kSavedCount > 0) {
      for (auto kept : Cell::kSaved) after.rows.push_back(y.*kept);
    }
    return after;
  }

  // rows: valid, the gradient of h, h, the own state before the step, what the
  // step kept, the gradients of that. Leaves the gradients of the
  // pre-activations, where they differ also those from the previous output;
  // with a projection, what was projected and the gradient of the outcome.
  Stepped BackwardStep(const Values& rows, const Values& state) const {
    const Value &valid = rows[0], &before = rows[3];
    const Value dh = state[0] + rows[1];
    const typename Cell::Parameters parameters = Parameters();
    Outputs y, grad;
    y.h = rows[2];
    grad.h = dh;
    Value projected;
    if constexpr (Cell::kSavedCount > 0) {
      for (int k = 0; k < Cell::kSavedCount; ++k) {
        y.*Cell::kSaved[k] = rows[4 + k];
        grad.*Cell::kSaved[k] = rows[4 + Cell::kSavedCount + k];
      }
    }
    if constexpr (Cell::kHasCellState) {
      Cell::Restore(&y, !y.co.is_number(), parameters);
      grad.*Cell::kState = grad.*Cell::kState + state[1];
      if (layer_.config.projected()) {
        projected = y.o * y.co;
        grad.h = MatMul(dh, Transposed(layer_.weights.projection));
      }
    }
    typename Cell::Gradients d = Cell::Backward(y, before, grad, parameters);
    for (Value& dz : d.z) dz = IfPositive(valid, dz, 0);
    const Value dz = Joined(d.z, 0, Cell::kInputPreActivations);
    const Value dz_h = Joined(d.z, Cell::kFirstRecurrent, Cell::kRecurrentPreActivations);
    Value dh_before =
        AsRows(RowsGradient(AsSequence(dz_h), layer_.weights.recurrent, layer_.recurrent_dropout));
    if (Cell::kHasState && !Cell::kHasCellState) dh_before = dh_before + d.state;
    Stepped step;
    step.state = {IfPositive(valid, dh_before, dh)};
    if (Cell::kHasCellState) {
      step.state.push_back(IfPositive(valid, d.state, state[1]));
    }
    step.rows = {dz};
    if (!kAllFromBoth) step.rows.push_back(dz_h);
    if (layer_.config.projected()) {
      step.rows.insert(step.rows.end(),
                       {IfPositive(valid, projected, 0), IfPositive(valid, dh, 0)});
    }
    return step;
  }

  // The state before each step, of which the cell's equations take the
  // gradient.
  Value OwnBefore(const LayerOutputs& outputs) const {
    if constexpr (Cell::kHasCellState) {
      return Before(layer_, outputs.steps[kSavedCs], layer_.c0, layer_.config.cell_size);
    }
    return HBefore(outputs);
  }

  Value HBefore(const LayerOutputs& outputs) const {
    return Before(layer_, outputs.h, layer_.h0, layer_.config.hidden_size);
  }

  LayerGradients Gradients(const LayerOutputs& outputs, const Value& own_before,
                           const Stepped& all) const {
    const Value &dz = all.rows[0], &dz_h = all.rows[kAllFromBoth ? 0 : 1];
    LayerGradients g;
    g.dz = dz;
    g.x = InputGradient(layer_, dz);
    g.h0 = all.state[0];
    g.weights.input_bias = SumOfRows(dz);
    g.weights.recurrent_bias = SumOfRows(dz_h);
    if (!layer_.weights.input.is_number()) {
      g.weights.input = MatrixGradient(Valid(layer_, layer_.x), dz, layer_.input_dropout);
    }
    g.weights.recurrent =
        MatrixGradient(Valid(layer_, HBefore(outputs)), dz_h, layer_.recurrent_dropout);
    if (layer_.config.projected()) {
      const size_t last = all.rows.size() - 1;
      g.weights.projection = MatrixGradient(all.rows[last - 1], all.rows[last], 1);
    }
    if constexpr (Cell::kHasCellState) {
      g.c0 = all.state[1];
      for (int p = 0; layer_.weights.has_peephole() && p < Cell::kPreActivations; ++p) {
        const Value& seen = p == Cell::kSeesNewState ? outputs.steps[kSavedCs] : own_before;
        g.weights.peephole[p] = SumOfRows(Block(dz, p) * Valid(layer_, seen));
      }
    }
    return g;
  }

  const Layer& layer_;
  const Value clip_;
};

// Calls f with the passes of the layer's cell.
template <class F>
auto WithPasses(const Layer& layer, const F& f) {
  switch (layer.config.cell) {
    case CellKind::kCustomLstm:
      return f(Passes<CustomLstmCell<GraphMath>>(layer));
    case CellKind::kGru:
      return f(Passes<GruCell<GraphMath>>(layer));
    case CellKind::kTanh:
      return f(Passes<TanhCell<GraphMath>>(layer));
    case CellKind::kRelu:
      return f(Passes<ReluCell<GraphMath>>(layer));
    case CellKind::kLstm:
      break;
  }
  return f(Passes<LstmCell<GraphMath>>(layer));
}

bool HasNoSteps(const Layer& layer) { return layer.time == 0 || layer.batch == 0; }

}  // namespace

LayerOutputs Forward(const Layer& layer) {
  if (HasNoSteps(layer)) return {0, layer.h0, layer.c0, {}};
  if (IsMpsGraphLstm(layer)) return MpsGraphForward(layer);
  return WithPasses(layer, [](const auto& passes) { return passes.Forward(); });
}

LayerGradients Backward(const Layer& layer, const LayerOutputs& outputs,
                        const LayerUpstream& upstream) {
  if (HasNoSteps(layer)) return {0, upstream.final_h, upstream.final_c, {}, 0};
  if (IsMpsGraphLstm(layer)) return MpsGraphBackward(layer, outputs, upstream);
  return WithPasses(layer, [&](const auto& passes) { return passes.Backward(outputs, upstream); });
}

}  // namespace tf_lstm_ops::metal
