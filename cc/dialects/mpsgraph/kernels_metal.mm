// Kernels of MPSGraph's LSTM and its gradients on a Metal device. Each direction
// is a layer graph of its own. MPSGraph's bidirectional form is not used: its
// results have other shapes in some releases.
#include <vector>

#include "backends/metal/gates.h"
#include "backends/metal/layer_graph.h"
#include "backends/metal/mpsgraph_lstm.h"
#include "backends/metal/saved_activations.h"
#include "core/lstm_cell.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using metal::Extents;
using metal::GateBlock;
using metal::GraphActivations;
using metal::JoinGates;
using metal::LayerGraph;
using metal::LayerGraphGrads;
using metal::LayerGraphOutputGrads;
using metal::LayerGraphOutputs;
using metal::Value;
using metal::Values;
using tf::KernelConstruction;
using tf::KernelContext;

// Returns a direction's part of an axis that has the parts of all directions.
Value Share(const Problem& problem, const Value& all, int axis, int64_t direction) {
  if (all.is_scalar()) return all;
  const int64_t size = all.dim(axis) / problem.directions;
  return Slice(all, axis, direction * size, size);
}

// Joins the parts of all directions along an axis. 0 where the directions have no values.
Value JoinShares(const Values& shares, int axis) {
  return shares[0].is_scalar() ? shares[0] : Concat(shares, axis);
}

// The inputs of both ops, each with the parts of all directions: matrices [D*4H, .], vectors
// [D*4H], states [N, D*H].
struct GraphInputs {
  Value source, input_weight, recurrent_weight, bias, init_state, init_cell, mask, peephole;

  GraphInputs(GraphBuilder* b, const Problem& problem)
      : source(b->In("source")),
        input_weight(b->In("input_weight")),
        recurrent_weight(Reshape(b->In("recurrent_weight"),
                                 {problem.directions * problem.gates(), problem.cell})),
        bias(b->In("bias")),
        init_state(b->In("init_state")),
        init_cell(b->In("init_cell")),
        mask(1),
        peephole(Reshape(b->In("peephole"), {problem.directions * problem.gates()})) {
    if (b->Has("mask") && problem.batch > 0) {
      mask = BroadcastTo(b->graph(), b->In("mask"), {problem.batch, problem.width()});
    }
  }
};

// The base class of both kernels.
class LstmKernel : public MetalKernel {
 public:
  using MetalKernel::MetalKernel;

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(descriptor_.Init(construction));
    return MetalKernel::Init(construction);
  }

 protected:
  Status Fetch(const KernelContext& context, MetalCall* call, Problem* problem) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    return MakeProblem(descriptor_, call->shape_of(), problem);
  }

  // The layer graphs of all directions.
  std::vector<LayerGraph> MakeLayers(GraphBuilder* b, const Problem& problem) const {
    const GraphInputs inputs(b, problem);
    const Directions directions(descriptor_, problem);
    std::vector<LayerGraph> layers(problem.directions);
    for (int64_t d = 0; d < problem.directions; ++d) {
      layers[d].graph = b->graph();
      layers[d].config = directions.MakeConfig();
      layers[d].sequence = directions.MakeSequence(d);
      SetInputs(problem, inputs, d, &layers[d]);
    }
    return layers;
  }

  const GateOrder& order() const { return descriptor_.gate_order; }

 private:
  void SetInputs(const Problem& problem, const GraphInputs& inputs, int64_t direction,
                 LayerGraph* layer) const {
    const auto share = [&](const Value& all, int axis) {
      return Share(problem, all, axis, direction);
    };
    layer->x = problem.has_input_weight ? inputs.source : share(inputs.source, 2);
    layer->weights.input = Transposed(share(inputs.input_weight, 0));
    layer->weights.recurrent = Transposed(share(inputs.recurrent_weight, 0));
    layer->weights.input_bias = share(inputs.bias, 0);
    layer->h0 = share(inputs.init_state, 1);
    layer->c0 = share(inputs.init_cell, 1);
    if (!inputs.mask.is_scalar()) {
      layer->recurrent_dropout = Reshape(share(inputs.mask, 1), {1, problem.batch, problem.cell});
    }
    const Value peephole = share(inputs.peephole, 0);
    for (int gate = 0; gate < kMaxPreActivations; ++gate) {
      layer->weights.peephole[gate] = GateBlock(peephole, 0, kMaxPreActivations, order(), gate);
    }
  }

  Descriptor descriptor_;
};

class ForwardKernel : public LstmKernel {
 public:
  ForwardKernel() : LstmKernel(MPSGraphLSTM()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("produce_cell", &produce_cell_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return LstmKernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context, &call, &problem));
    for (const Shape& shape : ForwardShapes(problem, produce_cell_, training_)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape, type()));
    }
    return Run(context, call, [&](GraphBuilder* b) { Build(b, problem); });
  }

 private:
  void Build(GraphBuilder* b, const Problem& problem) const {
    Values h, cell, z_state;
    for (LayerGraph layer : MakeLayers(b, problem)) {
      layer.training = training_;
      const LayerGraphOutputs outputs = BuildForward(layer);
      h.push_back(outputs.h);
      cell.push_back(outputs.saved[kSavedCs]);
      if (training_) z_state.push_back(JoinZState(outputs.saved, order()));
    }
    b->Out(0, JoinShares(h, 2));
    b->Out(1, JoinShares(cell, 2));
    if (training_) b->Out(2, JoinShares(z_state, 2));
  }

  bool produce_cell_ = false;
  bool training_ = false;
};

class GradientsKernel : public LstmKernel {
 public:
  GradientsKernel() : LstmKernel(MPSGraphLSTMGradients()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context, &call, &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    return Run(context, call, [&](GraphBuilder* b) { Build(b, problem); });
  }

 private:
  // Results of the forward pass and the gradients with respect to them, each with the parts of all
  // directions.
  struct OutputsAndGrads {
    Value cell, z_state;
    Value h_grad, final_h_grad, final_c_grad, cell_grad, z_state_grad;

    OutputsAndGrads(GraphBuilder* b, const Problem& problem)
        : cell(b->In("cell_output_fwd")),
          z_state(b->In("z_state")),
          h_grad(b->In("source_gradient")),
          final_h_grad(Reshape(b->In("state_gradient"), {problem.batch, problem.width()})),
          final_c_grad(Reshape(b->In("cell_gradient"), {problem.batch, problem.width()})),
          cell_grad(b->In("cell_output_gradient")),
          z_state_grad(b->In("z_state_gradient")) {}

    bool has_step_grads() const { return !cell_grad.is_scalar() || !z_state_grad.is_scalar(); }
  };

  void Build(GraphBuilder* b, const Problem& problem) const {
    const OutputsAndGrads given(b, problem);
    std::vector<LayerGraphGrads> grads;
    for (const LayerGraph& layer : MakeLayers(b, problem)) {
      grads.push_back(BuildDirection(problem, given, static_cast<int64_t>(grads.size()), layer));
    }
    SetOutputs(b, problem, grads);
  }

  LayerGraphGrads BuildDirection(const Problem& problem, const OutputsAndGrads& given,
                                 int64_t direction, const LayerGraph& layer) const {
    const auto share = [&](const Value& all, int axis) {
      return Share(problem, all, axis, direction);
    };
    const LayerGraphOutputGrads output_grads = {
        share(given.h_grad, 2), share(given.final_h_grad, 1), share(given.final_c_grad, 1),
        Saved(share(given.cell_grad, 2), share(given.z_state_grad, 2))};
    if (IsMpsGraphLstm(layer) && !given.has_step_grads()) {
      const LayerGraphOutputs outputs = {0, 0, 0,
                                         Saved(share(given.cell, 2), share(given.z_state, 2))};
      return BuildBackward(layer, outputs, output_grads);
    }
    // MPSGraph's LSTM takes no gradients with respect to cell and z_state, and
    // its z state is opaque. The forward pass is computed again.
    LayerGraph exact = layer;
    exact.exact_activations = true;
    return BuildBackward(exact, BuildForward(exact), output_grads);
  }

  GraphActivations Saved(const Value& cell, const Value& z_state) const {
    GraphActivations saved;
    saved[kSavedCs] = cell;
    SplitZState(z_state, order(), &saved);
    return saved;
  }

  void SetOutputs(GraphBuilder* b, const Problem& problem,
                  const std::vector<LayerGraphGrads>& grads) const {
    Values source, recurrent, input, bias, peephole, h0, c0;
    Value source_sum;
    for (const LayerGraphGrads& direction : grads) {
      source.push_back(direction.x);
      source_sum = source_sum + direction.x;
      recurrent.push_back(Transposed(direction.weights.recurrent));
      input.push_back(Transposed(direction.weights.input));
      bias.push_back(direction.weights.input_bias);
      peephole.push_back(JoinGates(direction.weights.peephole, 0, order()));
      h0.push_back(direction.h0);
      c0.push_back(direction.c0);
    }
    b->Out(0, problem.has_input_weight ? source_sum : JoinShares(source, 2));
    b->Out(1, Reshape(JoinShares(recurrent, 0), b->output_shape(1)));
    b->Out(2, JoinShares(input, 0));
    b->Out(3, JoinShares(bias, 0));
    b->Out(4, Reshape(JoinShares(peephole, 0), b->output_shape(4)));
    b->Out(5, JoinShares(h0, 1));
    b->Out(6, JoinShares(c0, 1));
  }
};

bool RegisterAll(TF_DataType type) {
  RegisterMetalKernel<ForwardKernel>(MPSGraphLSTM().op, type);
  RegisterMetalKernel<GradientsKernel>(MPSGraphLSTMGradients().op, type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             metal::HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::mpsgraph
