// Kernels of the ops behind tf_lstm_ops.keras.
#include "dialects/keras/op_variants.h"

#include <vector>

#include "dialects/common/kernel_metal.h"
#include "backends/metal/rnn.h"
#include "backends/metal/steps.h"

namespace tf_lstm_ops::metal {
namespace {

using keras::OpVariant;
using tf::KernelConstruction;
using tf::KernelContext;

// The reserve: what a step keeps, and h, of all steps, [rows,T,B,H].
int64_t ReserveRows(CellKind cell) { return SavedCount(cell) + 1; }

int64_t ReserveSize(const Sizes& sizes, CellKind cell) {
  return ReserveRows(cell) * sizes.time * sizes.batch * sizes.cell;
}

// A layer's call: sequences time-major, in the order of processing.
template <const OpVariant& kVariant>
class LayerKernel : public Kernel {
 public:
  explicit LayerKernel(const Signature& signature) : Kernel(signature) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant.cell));
    return Kernel::Init(construction);
  }

 protected:
  const keras::Attributes& attributes() const { return attributes_; }

  // From [B,T,.], and back.
  Value Ordered(const Value& sequences) const {
    const Value steps = Transposed(sequences);
    return attributes_.go_backwards ? Reversed(steps) : steps;
  }
  Value Unordered(const Value& steps) const {
    return Transposed(attributes_.go_backwards ? Reversed(steps) : steps);
  }

  Layer MakeLayer(Builder* b, const Sizes& sizes) const {
    Layer layer;
    layer.graph = b->graph();
    layer.config.cell = kVariant.cell;
    layer.config.input_size = sizes.input;
    layer.config.cell_size = sizes.cell;
    layer.config.hidden_size = sizes.cell;
    layer.config.gate_order = kVariant.order;
    layer.config.cell_clip = attributes_.cell_clip;
    layer.time = sizes.time;
    layer.batch = sizes.batch;
    layer.x = Ordered(b->In("x"));
    layer.h0 = b->In("initial_h");
    if (IsLstm(kVariant.cell)) layer.c0 = b->In("initial_c");
    if (b->Has("mask")) {
      layer.valid = Ordered(Reshape(b->In("mask"), {sizes.batch, sizes.time, 1}));
    }
    if (b->Has("input_dropout")) layer.input_dropout = b->In("input_dropout");
    if (b->Has("recurrent_dropout")) {
      layer.recurrent_dropout = b->In("recurrent_dropout");
    }
    layer.weights = WeightsOf(b);
    return layer;
  }

  // Where the output of a step is its h, not zero.
  Value HasOutput(const Layer& layer) const {
    if (layer.valid.is_number() || attributes_.zero_output_for_mask) {
      return layer.valid;
    }
    // A masked step repeats the output before it, if there is one.
    const Steps steps = {layer.graph, layer.time, layer.batch, false};
    const Value none = BroadcastTo(layer.graph, 0, {layer.batch, 1});
    return steps
        .Run({layer.valid}, {none}, {1},
             [](const Values& rows, const Values& state) {
               const Value seen = IfPositive(rows[0], 1, state[0]);
               return Stepped{{seen}, {seen}};
             })
        .rows[0];
  }

 private:
  static Weights WeightsOf(Builder* b) {
    Weights w;
    w.input = b->In("kernel");
    w.recurrent = b->In("recurrent_kernel");
    const Value bias = b->In("bias");
    if (kVariant.cell == CellKind::kGru && !bias.is_number()) {
      w.input_bias = Row(bias, 0);
      w.recurrent_bias = Row(bias, 1);
    } else {
      w.input_bias = bias;
    }
    if (b->Has("peephole")) {
      const Value peephole = b->In("peephole");
      w.peephole[kGateI] = Row(peephole, 0);
      w.peephole[kGateF] = Row(peephole, 1);
      w.peephole[kGateO] = Row(peephole, 2);
    }
    return w;
  }

  static Value Row(const Value& matrix, int64_t n) {
    return Reshape(Slice(matrix, 0, n, 1), {matrix.dim(1)});
  }

  keras::Attributes attributes_;
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
    Call call(this->signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const Sizes& sizes = call.sizes;
    const int64_t steps = this->attributes().return_sequences ? sizes.time : 1;
    const Shape state({sizes.batch, sizes.cell});
    std::vector<Shape> shapes = {Shape({sizes.batch, steps, sizes.cell}), state};
    if (IsLstm(kVariant.cell)) shapes.push_back(state);
    shapes.push_back(Shape({training_ ? ReserveSize(sizes, kVariant.cell) : 0}));
    for (const Shape& shape : shapes) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, this->type(), shape));
    }
    return this->Run(context, call, [&](Builder* b) { Build(b, this->MakeLayer(b, sizes)); });
  }

 private:
  void Build(Builder* b, const Layer& layer) const {
    const LayerOutputs outputs = Forward(layer);
    Value output = IfPositive(this->HasOutput(layer), outputs.h, 0);
    if (!this->attributes().return_sequences) {
      output = Slice(output, 0, layer.time - 1, 1);
    }
    int next = 0;
    b->Out(next++, Transposed(output));
    b->Out(next++, outputs.final_h);
    if (IsLstm(kVariant.cell)) b->Out(next++, outputs.final_c);
    if (training_ && layer.time > 0) b->Out(next, Saved(layer, outputs));
  }

  static Value Saved(const Layer& layer, const LayerOutputs& outputs) {
    const int64_t size = layer.time * layer.batch * layer.config.cell_size;
    Values rows;
    for (int k = 0; k < SavedCount(kVariant.cell); ++k) {
      rows.push_back(Reshape(outputs.steps[k], {size}));
    }
    rows.push_back(Reshape(outputs.h, {size}));
    return Concat(rows, 0);
  }

  bool training_ = true;
};

template <const OpVariant& kVariant>
class GradKernel : public LayerKernel<kVariant> {
 public:
  GradKernel() : LayerKernel<kVariant>(kVariant.gradient()) {}

  Status Compute(const KernelContext& context) override {
    Call call(this->signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(keras::CheckOutputs(this->attributes(), call));
    TF_LSTM_OPS_RETURN_IF_ERROR(keras::CheckReserve(call, ReserveSize(call.sizes, kVariant.cell)));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, this->type()));
    return this->Run(context, call, [&](Builder* b) { Build(b, this->MakeLayer(b, call.sizes)); });
  }

 private:
  void Build(Builder* b, const Layer& layer) const {
    LayerUpstream upstream;
    upstream.h = IfPositive(this->HasOutput(layer), OutputGradient(b, layer), 0);
    upstream.final_h = b->In("final_h_grad");
    if (IsLstm(kVariant.cell)) upstream.final_c = b->In("final_c_grad");
    const LayerGradients g = Backward(layer, Saved(b, layer), upstream);
    int next = 0;
    b->Out(next++, this->Unordered(g.x));
    b->Out(next++, g.h0);
    if (IsLstm(kVariant.cell)) b->Out(next++, g.c0);
    b->Out(next++, g.weights.input);
    b->Out(next++, g.weights.recurrent);
    b->Out(next++, BiasGradient(g.weights));
    if (b->Has("peephole")) b->Out(next, PeepholeGradient(g.weights));
  }

  static LayerOutputs Saved(Builder* b, const Layer& layer) {
    const Extents shape = {layer.time, layer.batch, layer.config.cell_size};
    const Value reserve = b->In("reserve");
    const int64_t size = shape[0] * shape[1] * shape[2];
    const auto row = [&](int k) { return Reshape(Slice(reserve, 0, k * size, size), shape); };
    LayerOutputs outputs;
    const int saved = SavedCount(kVariant.cell);
    for (int k = 0; k < saved; ++k) outputs.steps[k] = row(k);
    outputs.h = row(saved);
    return outputs;
  }

  // Of all steps, [T,B,H].
  Value OutputGradient(Builder* b, const Layer& layer) const {
    const Value gradient = Transposed(b->In("output_grad"));
    if (this->attributes().return_sequences || layer.time <= 1) return gradient;
    const Value others =
        BroadcastTo(layer.graph, 0, {layer.time - 1, layer.batch, layer.config.cell_size});
    return Concat({others, gradient}, 0);
  }

  static Value BiasGradient(const Weights& g) {
    if (kVariant.cell != CellKind::kGru || g.input_bias.is_number()) {
      return g.input_bias;
    }
    return Stack({g.input_bias, g.recurrent_bias});
  }
  static Value PeepholeGradient(const Weights& g) {
    if (g.peephole[kGateI].is_number()) return 0;
    return Stack({g.peephole[kGateI], g.peephole[kGateF], g.peephole[kGateO]});
  }
  static Value Stack(const Values& vectors) {
    Values rows;
    for (const Value& vector : vectors) {
      rows.push_back(Reshape(vector, {1, vector.dim(0)}));
    }
    return Concat(rows, 0);
  }
};

bool RegisterAll(TF_DataType type) {
  using keras::kGru, keras::kLstm;
  Register<ForwardKernel<kLstm>>(kLstm.forward().op, type);
  Register<GradKernel<kLstm>>(kLstm.gradient().op, type);
  Register<ForwardKernel<kGru>>(kGru.forward().op, type);
  Register<GradKernel<kGru>>(kGru.gradient().op, type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::metal
