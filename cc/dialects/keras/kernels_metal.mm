// Kernels of the ops behind tf_lstm_ops.keras on a Metal device.
#include "backends/metal/layer_graph.h"
#include "backends/metal/saved_activations.h"
#include "backends/metal/sequences.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/keras/problem.h"

namespace tf_lstm_ops::keras {
namespace {

using metal::BroadcastTo;
using metal::Concat;
using metal::Extents;
using metal::GraphSequence;
using metal::GraphWeights;
using metal::LayerGraph;
using metal::LayerGraphGrads;
using metal::LayerGraphOutputGrads;
using metal::LayerGraphOutputs;
using metal::Value;
using metal::Values;
using tf::KernelConstruction;
using tf::KernelContext;

// The base class of the kernels.
template <const OpVariant& kVariant>
class LayerKernel : public MetalKernel {
 public:
  using MetalKernel::MetalKernel;

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return MetalKernel::Init(construction);
  }

 protected:
  const Attributes& attributes() const { return attributes_; }

  // Rows are [T, B], in the order of the graph's steps. h of masked steps is
  // the state before them and not the op's output, so the reserve always has h.
  static ReserveLayout MakeReserveLayout(const Sizes& sizes) {
    return {sizes.time * sizes.batch, sizes, kVariant.cell, /*output_has_h=*/false};
  }

  // Returns the sequence without the mask, which is an argument of the graph.
  Sequence OpSequence(const Sizes& sizes) const {
    return MakeSequence(attributes_, sizes, nullptr);
  }

  LayerGraph MakeLayer(GraphBuilder* b, const Sizes& sizes) const {
    const Sequence sequence = OpSequence(sizes);
    LayerGraph layer;
    layer.graph = b->graph();
    layer.config = MakeConfig(kVariant, attributes_, sizes);
    layer.sequence = GraphSequence(sequence);
    layer.x = ToSteps(sequence, b->In("x"));
    layer.h0 = b->In("initial_h");
    if (kVariant.is_lstm()) layer.c0 = b->In("initial_c");
    if (b->Has("mask")) {
      layer.valid = ToSteps(sequence, Reshape(b->In("mask"), {sizes.batch, sizes.time, 1}));
    }
    if (b->Has("input_dropout")) layer.input_dropout = b->In("input_dropout");
    if (b->Has("recurrent_dropout")) layer.recurrent_dropout = b->In("recurrent_dropout");
    layer.weights = Weights(b);
    return layer;
  }

 private:
  static GraphWeights Weights(GraphBuilder* b) {
    GraphWeights w;
    w.input = b->In("kernel");
    w.recurrent = b->In("recurrent_kernel");
    const Value bias = b->In("bias"), peephole = b->In("peephole");
    const bool has_two_biases = kVariant.cell == CellKind::kGru && !bias.is_scalar();
    w.input_bias = has_two_biases ? Row(bias, 0) : bias;
    if (has_two_biases) w.recurrent_bias = Row(bias, 1);
    for (size_t n = 0; n < kPeepholeGates.size() && !peephole.is_scalar(); ++n) {
      w.peephole[kPeepholeGates[n]] = Row(peephole, static_cast<int64_t>(n));
    }
    return w;
  }

  static Value Row(const Value& matrix, int64_t n) {
    return Reshape(Slice(matrix, 0, n, 1), {matrix.dim(1)});
  }

  Attributes attributes_;
};

template <const OpVariant& kVariant>
class ForwardKernel : public LayerKernel<kVariant> {
 public:
  ForwardKernel() : LayerKernel<kVariant>(kVariant.forward()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return LayerKernel<kVariant>::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const Sizes& sizes = call.sizes;
    const int64_t reserve_size = training_ ? this->MakeReserveLayout(sizes).size() : 0;
    for (const Shape& shape : ForwardShapes(kVariant, this->attributes(), sizes, reserve_size)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape, this->type()));
    }
    return this->Run(context, call, [&](GraphBuilder* b) { Build(b, this->MakeLayer(b, sizes)); });
  }

 private:
  void Build(GraphBuilder* b, LayerGraph layer) const {
    layer.training = training_;
    const LayerGraphOutputs outputs = BuildForward(layer);
    Value output = IfPositive(HasOutput(layer, this->attributes().fill()), outputs.h, 0);
    if (!this->attributes().return_sequences) {
      output = Slice(output, 0, layer.sequence.time - 1, 1);
    }
    int next = 0;
    b->Out(next++, Transposed(output));
    b->Out(next++, outputs.final_h);
    if (kVariant.is_lstm()) b->Out(next++, outputs.final_c);
    if (training_ && !outputs.h.is_scalar()) b->Out(next, Reserve(outputs));
  }

  // Returns the reserve, in the order of ReserveLayout.
  static Value Reserve(const LayerGraphOutputs& outputs) {
    const Value& h = outputs.h;
    const Value flat_h = Reshape(h, {h.dim(0) * h.dim(1) * h.dim(2)});
    return Concat({PackActivations(outputs.saved, kVariant.cell), flat_h}, 0);
  }

  bool training_ = true;
};

template <const OpVariant& kVariant>
class GradKernel : public LayerKernel<kVariant> {
 public:
  GradKernel() : LayerKernel<kVariant>(kVariant.gradient()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const Sizes& sizes = call.sizes;
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckOutputs(this->attributes(), sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.shape_of(), this->MakeReserveLayout(sizes).size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, this->type()));
    return this->Run(context, call, [&](GraphBuilder* b) { Build(b, sizes); });
  }

 private:
  void Build(GraphBuilder* b, const Sizes& sizes) const {
    const LayerGraph layer = this->MakeLayer(b, sizes);
    LayerGraphOutputGrads output_grads;
    output_grads.h =
        IfPositive(HasOutput(layer, this->attributes().fill()), StepGrads(b, layer), 0);
    output_grads.final_h = b->In("final_h_grad");
    if (kVariant.is_lstm()) output_grads.final_c = b->In("final_c_grad");
    const LayerGraphGrads grads = BuildBackward(layer, Saved(b, layer, sizes), output_grads);
    int next = 0;
    b->Out(next++, FromSteps(this->OpSequence(sizes), grads.x));
    b->Out(next++, grads.h0);
    if (kVariant.is_lstm()) b->Out(next++, grads.c0);
    b->Out(next++, grads.weights.input);
    b->Out(next++, grads.weights.recurrent);
    b->Out(next++, BiasGrad(grads.weights));
    if (b->Has("peephole")) b->Out(next, PeepholeGrad(grads.weights));
  }

  // The outputs of the forward pass, from the reserve.
  LayerGraphOutputs Saved(GraphBuilder* b, const LayerGraph& layer, const Sizes& sizes) const {
    const Value reserve = b->In("reserve");
    const ReserveLayout layout = this->MakeReserveLayout(sizes);
    LayerGraphOutputs outputs;
    outputs.saved = UnpackActivations(Slice(reserve, 0, 0, layout.activations_size), layer.config,
                                      layer.sequence);
    outputs.h = Reshape(Slice(reserve, 0, layout.h_offset(), layout.h_size),
                        {sizes.time, sizes.batch, sizes.cell});
    return outputs;
  }

  // The gradients with respect to the outputs of all steps, [T, B, H].
  Value StepGrads(GraphBuilder* b, const LayerGraph& layer) const {
    const Value grad = Transposed(b->In("output_grad"));
    const Sequence& sequence = layer.sequence;
    const bool has_all_steps = this->attributes().return_sequences || sequence.time <= 1;
    if (has_all_steps || sequence.batch == 0) return grad;
    const Value others =
        BroadcastTo(layer.graph, 0, {sequence.time - 1, sequence.batch, layer.config.cell_size});
    return Concat({others, grad}, 0);
  }

  static Value BiasGrad(const GraphWeights& grads) {
    if (kVariant.cell != CellKind::kGru || grads.input_bias.is_scalar()) {
      return grads.input_bias;
    }
    return Stack({grads.input_bias, grads.recurrent_bias});
  }
  static Value PeepholeGrad(const GraphWeights& grads) {
    Values rows;
    for (const LstmGate gate : kPeepholeGates) rows.push_back(grads.peephole[gate]);
    return Stack(rows);
  }
  // Vectors [K] as the rows of a matrix. 0 where they are 0.
  static Value Stack(const Values& vectors) {
    Values rows;
    for (const Value& vector : vectors) {
      if (vector.is_scalar()) return 0;
      rows.push_back(Reshape(vector, {1, vector.dim(0)}));
    }
    return Concat(rows, 0);
  }
};

template <const OpVariant& kVariant>
void RegisterVariant(TF_DataType type) {
  RegisterMetalKernel<ForwardKernel<kVariant>>(kVariant.forward().op, type);
  RegisterMetalKernel<GradKernel<kVariant>>(kVariant.gradient().op, type);
}

bool RegisterAll(TF_DataType type) {
  RegisterVariant<kLstm>(type);
  RegisterVariant<kGru>(type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             metal::HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::keras
