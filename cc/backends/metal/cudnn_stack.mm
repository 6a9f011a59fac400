#include "backends/metal/cudnn_stack.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/dropout.h"

namespace tf_lstm_ops::metal {
namespace {


// Of all pseudo-layers.
struct States {
  Values h, c;
};

// What both passes need of a call.
class Stack {
 public:
  Stack(const StackCall& call, Builder* b)
      : call_(call),
        problem_(call.problem),
        model_(problem_.model),
        builder_(b),
        params_(b->In("params")),
        input_h_(TimeMajor(b->In("input_h"))),
        input_c_(is_lstm() ? TimeMajor(b->In("input_c")) : 0) {}

  bool is_lstm() const { return model_.cell == CellKind::kLstm; }
  const RnnModel& model() const { return model_; }
  int64_t PseudoLayer(int64_t layer, int64_t direction) const {
    return layer * model_.directions + direction;
  }

  // From the layout of the op's sequences and states, and back.
  Value TimeMajor(const Value& value) const {
    return problem_.time_major ? value : Transposed(value);
  }
  // A pseudo-layer's of states [L*D,B,.].
  Value State(const Value& states, int64_t p) const {
    if (states.is_number()) return states;
    return Reshape(Slice(states, 0, p, 1), {states.dim(1), states.dim(2)});
  }
  Value Joined(const Values& states) const {
    Values rows;
    for (const Value& state : states) {
      rows.push_back(Reshape(state, {1, state.dim(0), state.dim(1)}));
    }
    return TimeMajor(Concat(rows, 0));
  }

  Layer MakeLayer(int64_t layer, int64_t direction, const Value& x) const {
    const int64_t p = PseudoLayer(layer, direction);
    Layer made;
    made.graph = builder_->graph();
    made.config = LayerConfig(model_, layer);
    made.time = problem_.time;
    made.batch = problem_.batch;
    made.reversed = direction == 1;
    made.weights = WeightsOf(layer, p);
    made.valid = call_.valid;
    made.x = x;
    made.h0 = State(input_h_, p);
    made.c0 = State(input_c_, p);
    return made;
  }

  // Outputs of a layer as the next one sees them; gradients likewise.
  Value Dropped(int64_t layer, const Value& rows) const {
    if (call_.kept.is_number()) return rows;
    const Extents shape = {problem_.time, problem_.batch, model_.output_size()};
    const Value kept = Reshape(Slice(call_.kept, 0, layer, 1), shape);
    const DropoutMask mask(0, call_.dropout, 0, 0);
    return rows * IfPositive(kept, mask.scale(), 0);
  }

  // Gradients of all weights as one buffer.
  Value Params(const std::vector<Weights>& by_pseudo_layer) const {
    std::map<int64_t, Value> by_offset;
    const auto put = [&](const ParamsLayout::Region& region, const Value& value) {
      if (value.is_number()) return;  // a skipped input has no matrix
      int64_t size = 1;
      for (const int64_t extent : value.shape()) size *= extent;
      by_offset[region.offset] = Reshape(value, {size});
    };
    const int gates = model_.gates();
    const ParamsLayout& layout = problem_.params;
    for (size_t p = 0; p < by_pseudo_layer.size(); ++p) {
      const Weights& w = by_pseudo_layer[p];
      put(layout.Matrix(p, 0), Transposed(w.input));
      put(layout.Matrix(p, gates), Transposed(w.recurrent));
      if (model_.projected()) {
        put(layout.Matrix(p, 2 * gates), Transposed(w.projection));
      }
      put(layout.Bias(p, 0), w.input_bias);
      put(layout.Bias(p, gates), w.recurrent_bias);
    }
    Values parts;
    for (const auto& part : by_offset) parts.push_back(part.second);
    return Concat(parts, 0);
  }

 private:
  // `count` regions that follow each other, one above the other.
  Value Matrix(const ParamsLayout::Region& first, int count) const {
    return Reshape(Slice(params_, 0, first.offset, count * first.size()),
                   {count * first.rows, first.columns});
  }
  Value Vector(const ParamsLayout::Region& first, int count) const {
    return Slice(params_, 0, first.offset, count * first.size());
  }

  Weights WeightsOf(int64_t layer, int64_t p) const {
    const int gates = model_.gates();
    const ParamsLayout& layout = problem_.params;
    Weights w;
    if (layer > 0 || !model_.skip_input) {
      w.input = Transposed(Matrix(layout.Matrix(p, 0), gates));
    }
    w.recurrent = Transposed(Matrix(layout.Matrix(p, gates), gates));
    if (model_.projected()) {
      w.projection = Transposed(Matrix(layout.Matrix(p, 2 * gates), 1));
    }
    w.input_bias = Vector(layout.Bias(p, 0), gates);
    w.recurrent_bias = Vector(layout.Bias(p, gates), gates);
    return w;
  }

  const StackCall& call_;
  const Problem& problem_;
  const RnnModel& model_;
  Builder* const builder_;
  const Value params_, input_h_, input_c_;
};

// A part of the reserve.
Value Flat(const Value& value, int64_t size) { return Reshape(value, {size}); }

Value SumOf(const Values& values) {
  Value sum;
  for (const Value& value : values) sum = sum + value;
  return sum;
}

}  // namespace

ReserveLayout::ReserveLayout(const Problem& problem, float dropout)
    : pseudo_layers_(problem.model.pseudo_layers()),
      rows_(SavedCount(problem.model.cell)),
      steps_size_(problem.time * problem.batch * problem.model.cell_size),
      h_size_(problem.time * problem.batch * problem.model.hidden_size),
      mask_size_(HasDropout(problem, dropout)
                     ? (problem.model.layers - 1) * problem.time * problem.batch *
                           problem.model.output_size()
                     : 0) {}

void BuildStack(const StackCall& call, const Value& header, Builder* b) {
  const Stack stack(call, b);
  const RnnModel& model = stack.model();
  const ReserveLayout layout(call.problem, call.dropout);
  States final;
  Values kept;  // the parts of the reserve
  Value x = stack.TimeMajor(b->In("input")), y;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    Values h;
    for (int64_t d = 0; d < model.directions; ++d) {
      const LayerOutputs outputs = Forward(stack.MakeLayer(layer, d, x));
      h.push_back(outputs.h);
      final.h.push_back(outputs.final_h);
      final.c.push_back(outputs.final_c);
      for (int k = 0; k < SavedCount(model.cell); ++k) {
        kept.push_back(Flat(outputs.steps[k], layout.steps_size()));
      }
      kept.push_back(Flat(outputs.h, layout.h_size()));
    }
    y = Concat(h, 2);
    if (layer < model.layers - 1) x = stack.Dropped(layer, y);
  }
  b->Out(0, stack.TimeMajor(IfPositive(call.valid, y, 0)));
  b->Out(1, stack.Joined(final.h));
  b->Out(2, stack.is_lstm() ? stack.Joined(final.c) : 0);
  if (header.is_number()) return b->Out(3, 0);
  if (!call.kept.is_number()) {
    kept.push_back(Flat(call.kept, layout.mask_size()));
  }
  kept.push_back(header);
  b->Out(3, Concat(kept, 0));
}

void BuildStackBackward(const StackCall& call, Builder* b) {
  const Problem& problem = call.problem;
  const ReserveLayout layout(problem, call.dropout);
  const RnnModel& model = problem.model;
  const Value reserve = b->In("reserve_space");
  const auto saved = [&](int64_t p) {
    const Extents steps = {problem.time, problem.batch, model.cell_size};
    LayerOutputs outputs;
    for (int k = 0; k < SavedCount(model.cell); ++k) {
      outputs.steps[k] = Reshape(Slice(reserve, 0, layout.Steps(p, k), layout.steps_size()), steps);
    }
    outputs.h = Reshape(Slice(reserve, 0, layout.H(p), layout.h_size()),
                        {problem.time, problem.batch, model.hidden_size});
    return outputs;
  };
  StackCall with_mask = call;
  if (layout.mask_size() > 0) {
    with_mask.kept = Reshape(Slice(reserve, 0, layout.Mask(), layout.mask_size()),
                             {model.layers - 1, problem.time, problem.batch, model.output_size()});
  }
  const Stack stack(with_mask, b);
  const auto input_of = [&](int64_t layer) {
    if (layer == 0) return stack.TimeMajor(b->In("input"));
    Values h;
    for (int64_t d = 0; d < model.directions; ++d) {
      h.push_back(saved(stack.PseudoLayer(layer - 1, d)).h);
    }
    return stack.Dropped(layer - 1, Concat(h, 2));
  };
  const Value final_h = stack.TimeMajor(b->In("output_h_backprop"));
  const Value final_c = stack.is_lstm() ? stack.TimeMajor(b->In("output_c_backprop")) : 0;
  Value y_grad = IfPositive(call.valid, stack.TimeMajor(b->In("output_backprop")), 0);
  const int64_t pseudo_layers = model.pseudo_layers();
  States initial = {Values(pseudo_layers), Values(pseudo_layers)};
  std::vector<Weights> weights(pseudo_layers);
  for (int64_t layer = model.layers - 1; layer >= 0; --layer) {
    const Value x = input_of(layer);
    Values x_grad;
    for (int64_t d = 0; d < model.directions; ++d) {
      const int64_t p = stack.PseudoLayer(layer, d);
      const LayerUpstream upstream = {Slice(y_grad, 2, d * model.hidden_size, model.hidden_size),
                                      stack.State(final_h, p),
                                      stack.State(final_c, p),
                                      {}};
      const LayerGradients g = Backward(stack.MakeLayer(layer, d, x), saved(p), upstream);
      x_grad.push_back(g.x);
      initial.h[p] = g.h0;
      initial.c[p] = g.c0;
      weights[p] = g.weights;
    }
    y_grad = SumOf(x_grad);
    if (layer > 0) y_grad = stack.Dropped(layer - 1, y_grad);
  }
  b->Out(0, stack.TimeMajor(y_grad));
  b->Out(1, stack.Joined(initial.h));
  b->Out(2, stack.is_lstm() ? stack.Joined(initial.c) : 0);
  b->Out(3, stack.Params(weights));
}

}  // namespace tf_lstm_ops::metal
