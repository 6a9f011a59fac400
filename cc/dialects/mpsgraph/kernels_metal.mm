// Kernels of MPSGraph's LSTM and its gradients. Each direction is an LSTM of
// its own, in MPSGraph too: its bidirectional form has results of other shapes
// in some releases, and nothing to gain.
#include <vector>

#include "backends/metal/gates.h"
#include "dialects/common/kernel_metal.h"
#include "backends/metal/mpsgraph_lstm.h"
#include "backends/metal/rnn.h"
#include "core/lstm_cell.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::metal {
namespace {

using mpsgraph::Problem;
using tf::KernelConstruction;
using tf::KernelContext;

class LstmKernel : public Kernel {
 public:
  using Kernel::Kernel;

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(descriptor_.Init(construction));
    return Kernel::Init(construction);
  }

 protected:
  Status Fetch(const KernelContext& context, Call* call, Problem* problem) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    return mpsgraph::MakeProblem(
        descriptor_, [call](const char* name) { return call->InputShape(name); }, problem);
  }

  // A direction's share of an axis that holds both's.
  static Value Share(const Problem& problem, const Value& both, int axis, int64_t direction) {
    if (both.is_number()) return both;
    const int64_t size = both.dim(axis) / problem.directions;
    return Slice(both, axis, direction * size, size);
  }

  std::vector<Layer> MakeLayers(Builder* b, const Problem& problem) const {
    Layer layer;
    layer.graph = b->graph();
    layer.config.cell = CellKind::kCustomLstm;
    layer.config.input_size = problem.input;
    layer.config.cell_size = problem.cell;
    layer.config.hidden_size = problem.cell;
    layer.config.gate_order = descriptor_.gate_order;
    layer.config.activations = descriptor_.activations;
    if (!problem.has_input_weight) layer.config.x_gate_stride = problem.cell;
    layer.time = problem.time;
    layer.batch = problem.batch;
    const Arguments all = ArgumentsOf(b, problem);
    std::vector<Layer> layers(problem.directions, layer);
    for (int64_t d = 0; d < problem.directions; ++d) {
      layers[d].reversed = problem.directions == 2 ? d == 1 : descriptor_.reverse;
      SetArguments(problem, all, d, &layers[d]);
    }
    return layers;
  }

  const GateOrder& order() const { return descriptor_.gate_order; }

  StepValues StepsOf(const Value& cell, const Value& z_state) const {
    StepValues steps;
    steps[kSavedCs] = cell;
    SetZState(z_state, order(), &steps);
    return steps;
  }

 private:
  // Matrices [D*4H,.], vectors [D*4H], states [N,D*H].
  struct Arguments {
    Value source, input, recurrent, bias, init_state, init_cell, mask, peephole;
  };

  static Arguments ArgumentsOf(Builder* b, const Problem& problem) {
    const int64_t gates = problem.directions * problem.gates();
    const int64_t width = problem.directions * problem.cell;
    Arguments all = {b->In("source"),
                     b->In("input_weight"),
                     Reshape(b->In("recurrent_weight"), {gates, problem.cell}),
                     b->In("bias"),
                     b->In("init_state"),
                     b->In("init_cell"),
                     1,
                     Reshape(b->In("peephole"), {gates})};
    if (b->Has("mask") && problem.batch > 0) {
      all.mask = BroadcastTo(b->graph(), b->In("mask"), {problem.batch, width});
    }
    return all;
  }

  void SetArguments(const Problem& problem, const Arguments& all, int64_t d, Layer* layer) const {
    const auto share = [&](const Value& both, int axis) { return Share(problem, both, axis, d); };
    layer->x = problem.has_input_weight ? all.source : share(all.source, 2);
    layer->weights.input = Transposed(share(all.input, 0));
    layer->weights.recurrent = Transposed(share(all.recurrent, 0));
    layer->weights.input_bias = share(all.bias, 0);
    layer->h0 = share(all.init_state, 1);
    layer->c0 = share(all.init_cell, 1);
    if (!all.mask.is_number()) {
      layer->recurrent_dropout = Reshape(share(all.mask, 1), {1, problem.batch, problem.cell});
    }
    const Value peephole = share(all.peephole, 0);
    for (int p = 0; p < kMaxPreActivations; ++p) {
      layer->weights.peephole[p] = GateBlock(peephole, 0, kMaxPreActivations, order(), p);
    }
  }

  mpsgraph::Descriptor descriptor_;
};

// The directions' values beside each other; 0 where they have none.
Value Joined(const Values& directions, int axis) {
  return directions[0].is_number() ? directions[0] : Concat(directions, axis);
}

class ForwardKernel : public LstmKernel {
 public:
  ForwardKernel() : LstmKernel(mpsgraph::MPSGraphLSTM()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("produce_cell", &produce_cell_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return LstmKernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call call(signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context, &call, &problem));
    const Shape none({0}), steps = problem.Steps(problem.cell);
    const bool has_cell = produce_cell_ || training_;
    for (const Shape& shape :
         {steps, has_cell ? steps : none, training_ ? problem.Steps(problem.gates()) : none}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, type(), shape));
    }
    return Run(context, call, [&](Builder* b) {
      Values h, cell, z_state;
      for (const Layer& layer : MakeLayers(b, problem)) {
        const LayerOutputs outputs = Forward(layer);
        h.push_back(outputs.h);
        cell.push_back(outputs.steps[kSavedCs]);
        z_state.push_back(ZState(outputs.steps, order()));
      }
      b->Out(0, Joined(h, 2));
      b->Out(1, Joined(cell, 2));
      b->Out(2, Joined(z_state, 2));
    });
  }

 private:
  bool produce_cell_ = false;
  bool training_ = false;
};

class GradientsKernel : public LstmKernel {
 public:
  GradientsKernel() : LstmKernel(mpsgraph::MPSGraphLSTMGradients()) {}

  Status Compute(const KernelContext& context) override {
    Call call(signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context, &call, &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    return Run(context, call, [&](Builder* b) { Build(b, problem); });
  }

 private:
  // Of all directions.
  struct Tensors {
    Value cell, z_state, output_grad, state_grad, cell_final_grad, cell_grad, z_grad;
  };

  void Build(Builder* b, const Problem& problem) const {
    const Extents state = {problem.batch, problem.directions * problem.cell};
    const Tensors all = {b->In("cell_output_fwd"),
                         b->In("z_state"),
                         b->In("source_gradient"),
                         Reshape(b->In("state_gradient"), state),
                         Reshape(b->In("cell_gradient"), state),
                         b->In("cell_output_gradient"),
                         b->In("z_state_gradient")};
    std::vector<LayerGradients> found;
    for (Layer& layer : MakeLayers(b, problem)) {
      const auto d = static_cast<int64_t>(found.size());
      found.push_back(Direction(problem, all, d, &layer));
    }
    Out(b, problem, found);
  }

  LayerGradients Direction(const Problem& problem, const Tensors& all, int64_t d,
                           Layer* layer) const {
    const auto share = [&](const Value& both, int axis) { return Share(problem, both, axis, d); };
    const LayerUpstream upstream = {share(all.output_grad, 2), share(all.state_grad, 1),
                                    share(all.cell_final_grad, 1),
                                    StepsOf(share(all.cell_grad, 2), share(all.z_grad, 2))};
    const bool from_steps = !all.cell_grad.is_number() || !all.z_grad.is_number();
    if (IsMpsGraphLstm(*layer) && !from_steps) {
      const LayerOutputs outputs = {0, 0, 0, StepsOf(share(all.cell, 2), share(all.z_state, 2))};
      return Backward(*layer, outputs, upstream);
    }
    // MPSGraph takes no gradients of the steps, and what its z state holds is
    // its own affair: the steps are taken again.
    layer->exact_steps = true;
    return Backward(*layer, Forward(*layer), upstream);
  }

  void Out(Builder* b, const Problem& problem, const std::vector<LayerGradients>& found) const {
    Values source, recurrent, input, bias, peephole, h0, c0;
    for (const LayerGradients& g : found) {
      source.push_back(g.x);
      recurrent.push_back(Transposed(g.weights.recurrent));
      input.push_back(Transposed(g.weights.input));
      bias.push_back(g.weights.input_bias);
      peephole.push_back(JoinGates(g.weights.peephole, 0, order()));
      h0.push_back(g.h0);
      c0.push_back(g.c0);
    }
    if (problem.has_input_weight) {
      b->Out(0, found.size() == 2 ? source[0] + source[1] : source[0]);
    } else {
      b->Out(0, Joined(source, 2));
    }
    b->Out(1, Reshape(Joined(recurrent, 0), b->output_shape(1)));
    b->Out(2, Joined(input, 0));
    b->Out(3, Joined(bias, 0));
    b->Out(4, Reshape(Joined(peephole, 0), b->output_shape(4)));
    b->Out(5, Joined(h0, 1));
    b->Out(6, Joined(c0, 1));
  }
};

bool RegisterAll(TF_DataType type) {
  Register<ForwardKernel>(mpsgraph::MPSGraphLSTM().op, type);
  Register<GradientsKernel>(mpsgraph::MPSGraphLSTMGradients().op, type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::metal
