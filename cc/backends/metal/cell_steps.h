// CellSteps: one step of a layer graph, forward and backward, for a cell of
// core/.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_CELL_STEPS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_CELL_STEPS_H_

#include "backends/metal/gates.h"
#include "backends/metal/layer_graph.h"
#include "backends/metal/products.h"
#include "backends/metal/step_loop.h"
#include "core/cells.h"

namespace tf_lstm_ops::metal {

// AsSequence reshapes [B, .] to [1, B, .]. AsRows is the inverse. Scalars are
// returned unchanged.
inline Value AsSequence(const Value& rows) {
  if (rows.is_scalar()) return rows;
  return Reshape(rows, {1, rows.dim(0), rows.dim(1)});
}
inline Value AsRows(const Value& sequence) {
  if (sequence.is_scalar()) return sequence;
  return Reshape(sequence, {sequence.dim(1), sequence.dim(2)});
}

template <class Cell>
class CellSteps {
 public:
  // All pre-activations are sums of an input and a recurrent product.
  static constexpr bool kSumsAll =
      Cell::kRecurrentPreActivations == Cell::kPreActivations;

  // `layer` must outlive this object.
  explicit CellSteps(const LayerGraph& layer)
      : layer_(layer),
        config_(layer.config),
        clip_(layer.config.cell_clip),
        projected_(layer.config.projected()) {}

  // `state` is h [B, P], then c [B, H] if the cell has a cell state. The
  // outputs are h, then the saved activations by number. z_input [B, G*H] is
  // the part of the pre-activations that comes from x.
  StepResult Forward(const Value& z_input, const Value& valid,
                     const Values& state) const {
    const GraphWeights& w = layer_.weights;
    Value z[Cell::kPreActivations];
    SetPreActivations(z_input,
                      AsRows(Product(AsSequence(state[0]), w.recurrent,
                                     layer_.recurrent_dropout)) +
                          w.recurrent_bias,
                      z);
    Outputs y = Cell::Forward(z, state.back(), Parameters());
    if (projected_) y.h = MatMul(y.h, w.projection);
    StepResult after;
    after.state = {IfPositive(valid, y.h, state[0])};
    if constexpr (Cell::kHasCellState) {
      y.*Cell::kState = IfPositive(valid, y.*Cell::kState, state[1]);
      after.state.push_back(y.*Cell::kState);
    }
    after.outputs = {after.state[0]};
    if constexpr (Cell::kSavedCount > 0) {
      for (const auto saved : Cell::kSaved) after.outputs.push_back(y.*saved);
    }
    return after;
  }

  // The indices of the inputs of a backward step. The saved activations by
  // number begin at kSaved. The gradients with respect to them follow.
  enum Input { kValid, kHGrad, kH, kStateBefore, kSaved };

  // `state` has the gradients with respect to the state after the step. The
  // outputs are the gradients of the pre-activations with input weights, [B,
  // G*H]; unless kSumsAll, those of the pre-activations with recurrent weights;
  // with a projection, the hidden state before the projection and the gradient
  // with respect to h.
  StepResult Backward(const Values& inputs, const Values& state) const {
    const Value& valid = inputs[kValid];
    const Value h_grad = state[0] + inputs[kHGrad];
    const Outputs y = SavedOutputs(inputs);
    typename Cell::Gradients d =
        Cell::Backward(y, inputs[kStateBefore],
                       OutputGrads(inputs, h_grad, state), Parameters());
    for (Value& z_grad : d.z) z_grad = IfPositive(valid, z_grad, 0);
    const Value recurrent_z_grad =
        Joined(d.z, Cell::kFirstRecurrent, Cell::kRecurrentPreActivations);
    StepResult step;
    step.outputs = {Joined(d.z, 0, Cell::kInputPreActivations)};
    if (!kSumsAll) step.outputs.push_back(recurrent_z_grad);
    if constexpr (Cell::kHasOutputGate) {
      if (projected_) {
        step.outputs.push_back(IfPositive(valid, y.o * y.co, 0));
        step.outputs.push_back(IfPositive(valid, h_grad, 0));
      }
    }
    Value h_before_grad =
        AsRows(RowsGrad(AsSequence(recurrent_z_grad), layer_.weights.recurrent,
                        layer_.recurrent_dropout));
    if (Cell::kHasState && !Cell::kHasCellState) {
      h_before_grad = h_before_grad + d.state;
    }
    step.state = {IfPositive(valid, h_before_grad, h_grad)};
    if (Cell::kHasCellState) {
      step.state.push_back(IfPositive(valid, d.state, state[1]));
    }
    return step;
  }

  // Broadcasts a state or a scalar to [B, width].
  Value State(const Value& rows, int64_t width) const {
    return BroadcastTo(layer_.graph, rows, {layer_.sequence.batch, width});
  }

  // The block of a pre-activation along the last axis.
  Value Block(const Value& gates, int pre_activation) const {
    return GateBlock(gates, static_cast<int>(gates.shape().size()) - 1,
                     layer_.gates(), config_.gate_order, pre_activation);
  }

 private:
  using Outputs = typename Cell::Outputs;

  typename Cell::Parameters Parameters() const {
    if constexpr (Cell::kHasPeephole) {
      const GraphWeights& w = layer_.weights;
      return {w.has_peephole() ? w.peephole.data() : nullptr,
              config_.cell_clip > 0 ? &clip_ : nullptr, &config_.options};
    } else {
      return {};
    }
  }

  // Sets z from the parts that come from x and from the previous h, [B, G*H].
  void SetPreActivations(const Value& z_input, const Value& z_recurrent,
                         Value (&z)[Cell::kPreActivations]) const {
    const Value sum = kSumsAll ? z_input + z_recurrent : Value();
    for (int k = 0; k < Cell::kPreActivations; ++k) {
      if (kSumsAll) {
        z[k] = Block(sum, k);
        continue;
      }
      if (k < Cell::kInputPreActivations) z[k] = Block(z_input, k);
      if (k >= Cell::kFirstRecurrent) z[k] = z[k] + Block(z_recurrent, k);
    }
    if (Cell::kHasForgetBias) {
      z[kGateF] = z[kGateF] + Value(config_.forget_bias);
    }
  }

  // Joins the pre-activations [first, first + count) to [B, G*H].
  Value Joined(const Value (&z)[Cell::kPreActivations], int first,
               int count) const {
    Values blocks(layer_.gates());
    for (int k = first; k < first + count; ++k) {
      blocks[config_.gate_order.block[k]] = State(z[k], config_.cell_size);
    }
    return Concat(blocks, 1);
  }

  Outputs SavedOutputs(const Values& inputs) const {
    Outputs y;
    y.h = inputs[kH];
    if constexpr (Cell::kSavedCount > 0) {
      for (int k = 0; k < Cell::kSavedCount; ++k) {
        y.*Cell::kSaved[k] = inputs[kSaved + k];
      }
    }
    if constexpr (Cell::kHasOutputGate) {
      Cell::Restore(&y, !y.co.is_scalar(), Parameters());
    }
    return y;
  }

  Outputs OutputGrads(const Values& inputs, const Value& h_grad,
                      const Values& state) const {
    Outputs grad;
    if constexpr (Cell::kSavedCount > 0) {
      for (int k = 0; k < Cell::kSavedCount; ++k) {
        grad.*Cell::kSaved[k] = inputs[kSaved + Cell::kSavedCount + k];
      }
    }
    if constexpr (Cell::kHasCellState) {
      grad.*Cell::kState = grad.*Cell::kState + state[1];
    }
    grad.h = projected_ ? MatMul(h_grad, Transposed(layer_.weights.projection))
                        : h_grad;
    return grad;
  }

  const LayerGraph& layer_;
  const RnnConfig& config_;
  const Value clip_;
  const bool projected_;
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_CELL_STEPS_H_
