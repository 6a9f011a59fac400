// Kernels of MPSGraph's LSTM and its gradients on a Metal device. Each direction is a call of
// MPSGraph's LSTM over the steps in its own order.
#include <algorithm>
#include <vector>

#include "backends/metal/lstm.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using metal::BroadcastTo;
using metal::Concat;
using metal::LstmArguments;
using metal::LstmGrads;
using metal::LstmResults;
using metal::Value;
using metal::Values;
using tf::KernelConstruction;
using tf::KernelContext;

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

  static bool IsEmpty(const Problem& problem) {
    return problem.time == 0 || problem.batch == 0 || problem.cell == 0;
  }

  // A direction's part of an axis that has the parts of all directions.
  static Value Share(const Problem& problem, const Value& all, int axis, int64_t direction) {
    if (all.is_scalar()) return all;
    const int64_t size = all.dim(axis) / problem.directions;
    return Slice(all, axis, direction * size, size);
  }
  // Joins the parts of all directions. 0 where they have no values.
  static Value Join(const Values& shares, int axis) {
    return shares[0].is_scalar() ? shares[0] : Concat(shares, axis);
  }

  // Steps [T, N, .] in the order of a direction, or back.
  Value InOrder(const Problem& problem, int64_t direction, const Value& steps) const {
    const bool reversed = problem.directions == 2 ? direction == 1 : descriptor_.reverse;
    return reversed ? Reversed(steps) : steps;
  }

  LstmArguments Arguments(GraphBuilder* b, const Problem& problem, int64_t d) const {
    const auto share = [&](const Value& all, int axis) { return Share(problem, all, axis, d); };
    const int64_t gates = problem.gates();
    LstmArguments arguments;
    arguments.graph = b->graph();
    const Value source = b->In("source");
    if (source.is_scalar()) {  // an input weight without columns
      arguments.source = BroadcastTo(b->graph(), 0, {problem.time, problem.batch, gates});
    } else {
      arguments.source = InOrder(problem, d, problem.has_input_weight ? source : share(source, 2));
      arguments.input_weight = share(b->In("input_weight"), 0);
    }
    arguments.recurrent_weight =
        share(Reshape(b->In("recurrent_weight"), {problem.directions * gates, problem.cell}), 0);
    arguments.bias = share(b->In("bias"), 0);
    arguments.init_state = share(b->In("init_state"), 1);
    arguments.init_cell = share(b->In("init_cell"), 1);
    if (b->Has("mask")) {
      arguments.mask =
          share(BroadcastTo(b->graph(), b->In("mask"), {problem.batch, problem.width()}), 1);
    }
    arguments.peephole = share(Reshape(b->In("peephole"), {problem.directions * gates}), 0);
    arguments.forget_gate_last = descriptor_.gate_order.block == kOrderICFO.block;
    arguments.activations = descriptor_.activations;
    return arguments;
  }

 private:
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
    if (IsEmpty(problem)) return Status();
    return Run(context, call, [&](GraphBuilder* b) { Build(b, problem); });
  }

 private:
  void Build(GraphBuilder* b, const Problem& problem) const {
    Values h, cell, z_state;
    for (int64_t d = 0; d < problem.directions; ++d) {
      const LstmResults results = Lstm(Arguments(b, problem, d), training_);
      h.push_back(InOrder(problem, d, results.h));
      cell.push_back(InOrder(problem, d, results.cell));
      z_state.push_back(InOrder(problem, d, results.z_state));
    }
    b->Out(0, Join(h, 2));
    b->Out(1, Join(cell, 2));
    b->Out(2, Join(z_state, 2));
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
    if (call.Find("cell_output_gradient") || call.Find("z_state_gradient")) {
      return MakeStatus(Code::kUnimplemented,
                        "the Metal kernel takes no gradient with respect to cell or z_state; call "
                        "both ops in tf.device(\"CPU\")");
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    return Run(context, call, [&](GraphBuilder* b) { Build(b, problem); });
  }

 private:
  LstmGrads DirectionGrads(GraphBuilder* b, const Problem& problem, int64_t d) const {
    const auto share = [&](const Value& all, int axis) { return Share(problem, all, axis, d); };
    const auto state_grad = [&](const char* name) {
      return share(Reshape(b->In(name), {problem.batch, problem.width()}), 1);
    };
    const auto steps = [&](const char* name) { return InOrder(problem, d, share(b->In(name), 2)); };
    const Value final_h = state_grad("state_gradient"), final_cell = state_grad("cell_gradient");
    if (IsEmpty(problem)) return {0, 0, 0, 0, 0, final_h, final_cell};
    LstmGrads grads =
        LstmGradients(Arguments(b, problem, d), {0, steps("cell_output_fwd"), steps("z_state")},
                      {steps("source_gradient"), final_h, final_cell});
    grads.source = InOrder(problem, d, grads.source);
    return grads;
  }

  void Build(GraphBuilder* b, const Problem& problem) const {
    Values source, recurrent, input, bias, peephole, h0, c0;
    Value source_sum;
    for (int64_t d = 0; d < problem.directions; ++d) {
      const LstmGrads grads = DirectionGrads(b, problem, d);
      source.push_back(grads.source);
      source_sum = source_sum + grads.source;
      recurrent.push_back(grads.recurrent_weight);
      input.push_back(grads.input_weight);
      bias.push_back(grads.bias);
      peephole.push_back(grads.peephole);
      h0.push_back(grads.init_state);
      c0.push_back(grads.init_cell);
    }
    b->Out(0, problem.has_input_weight ? source_sum : Join(source, 2));
    b->Out(1, Reshape(Join(recurrent, 0), b->output_shape(1)));
    b->Out(2, Join(input, 0));
    b->Out(3, Join(bias, 0));
    b->Out(4, Reshape(Join(peephole, 0), b->output_shape(4)));
    b->Out(5, Join(h0, 1));
    b->Out(6, Join(c0, 1));
  }
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterMetalKernel<ForwardKernel>(MPSGraphLSTM().op),
    RegisterMetalKernel<GradientsKernel>(MPSGraphLSTMGradients().op)};

}  // namespace
}  // namespace tf_lstm_ops::mpsgraph
