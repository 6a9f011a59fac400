// Kernels of the block-cell ops on a Metal device. MPSGraph's own LSTM has no
// clipping, no peephole that reads the new cell state, and no output for each
// gate. The graphs therefore compute each step from elementary operations.
#include <algorithm>
#include <string>
#include <utility>

#include "backends/metal/layer_graph.h"
#include "core/lstm_cell.h"
#include "dialects/block_cell/problem.h"
#include "dialects/common/kernel_metal.h"

namespace tf_lstm_ops::block_cell {
namespace {

using metal::Concat;
using metal::GraphWeights;
using metal::LayerGraph;
using metal::LayerGraphGrads;
using metal::LayerGraphOutputGrads;
using metal::LayerGraphOutputs;
using metal::Value;
using tf::KernelConstruction;
using tf::KernelContext;

// The base class of the kernels of all ops.
template <const OpVariant& kVariant>
class BlockCellKernel : public MetalKernel {
 public:
  BlockCellKernel() : MetalKernel(kVariant.signature()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return MetalKernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const int64_t time = kVariant.sequence ? call.sizes.time : 1;
    const int64_t steps = kVariant.sequence ? *call.Find(kInSeqLenMax)->data<int64_t>() : 1;
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckSeqLenMax(steps, time));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    // seq_len_max is an argument of the graph, not a part of it.
    if (steps < time) AddValidSteps(time, steps, &call);
    const Sequence sequence = MakeSequence(call.sizes.batch, time, time);
    return Run(context, call,
               [&](GraphBuilder* b) { Build(b, MakeLayer(b, call.sizes, sequence)); });
  }

 protected:
  virtual void Build(GraphBuilder* b, const LayerGraph& layer) const = 0;

  // An input of each step as [T, B, .].
  static Value Rows(GraphBuilder* b, const char* name) {
    const Value rows = b->In(name);
    if (kVariant.sequence || rows.is_scalar()) return rows;
    return Reshape(rows, {1, rows.dim(0), rows.dim(1)});
  }
  // Sets output n to a value [T, B, .]. Rows from seq_len_max on become zero.
  static void OutRows(GraphBuilder* b, int n, const LayerGraph& layer, const Value& rows) {
    const Value valid = IfPositive(layer.valid, rows, 0);
    if (kVariant.sequence || valid.is_scalar()) return b->Out(n, valid);
    b->Out(n, Reshape(valid, {valid.dim(1), valid.dim(2)}));
  }

 private:
  static void AddValidSteps(int64_t time, int64_t steps, MetalCall* call) {
    const int64_t batch = call->sizes.batch;
    MetalCall::HostArgument valid = {"valid", {time, batch, 1}, {}};
    valid.elements.resize(time * batch, 0);
    std::fill_n(valid.elements.begin(), steps * batch, 1.0f);
    call->host_arguments.push_back(std::move(valid));
  }

  LayerGraph MakeLayer(GraphBuilder* b, const Sizes& sizes, const Sequence& sequence) const {
    LayerGraph layer;
    layer.graph = b->graph();
    layer.config = MakeConfig(attributes_, sizes);
    layer.sequence = sequence;
    layer.valid = b->HostArgument("valid", 1);
    layer.exact_activations = true;
    layer.x = Rows(b, "x");
    layer.h0 = b->In("h_prev");
    layer.c0 = b->In("cs_prev");
    const Value w = b->In("w");  // the rows of x, then the rows of h
    layer.weights.input = Slice(w, 0, 0, sizes.input);
    layer.weights.recurrent = Slice(w, 0, sizes.input, sizes.cell);
    layer.weights.input_bias = b->In("b");
    for (const Peephole& peephole : kPeepholes) {
      if (!attributes_.use_peephole) break;
      layer.weights.peephole[peephole.gate] = b->In(peephole.name);
    }
    return layer;
  }

  Attributes attributes_;
};

template <const OpVariant& kVariant>
class ForwardKernel : public BlockCellKernel<kVariant> {
 protected:
  void Build(GraphBuilder* b, const LayerGraph& layer) const override {
    const LayerGraphOutputs outputs = BuildForward(layer);
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      this->OutRows(b, k, layer, outputs.saved[k]);
    }
    this->OutRows(b, kOutputH, layer, outputs.h);
  }
};

// The base class of the kernels of the gradient ops.
template <const OpVariant& kVariant>
class GradKernel : public BlockCellKernel<kVariant> {
 protected:
  LayerGraphGrads InputGrads(GraphBuilder* b, const LayerGraph& layer) const {
    LayerGraphOutputs outputs;
    LayerGraphOutputGrads grads;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      outputs.saved[k] = this->Rows(b, kSavedNames[k]);
      grads.saved[k] = OutputGrad(b, layer, kSavedNames[k]);
    }
    outputs.h = this->Rows(b, "h");
    grads.h = OutputGrad(b, layer, "h");
    return BuildBackward(layer, outputs, grads);
  }

  // wci_grad, wcf_grad, wco_grad: outputs [first, first + 3).
  void OutPeephole(GraphBuilder* b, int first, const GraphWeights& grads) const {
    for (size_t n = 0; n < kPeepholes.size(); ++n) {
      b->Out(first + static_cast<int>(n), grads.peephole[kPeepholes[n].gate]);
    }
  }

 private:
  // The gradient with respect to a forward output, zero from seq_len_max on. 0
  // where the op has no such input.
  Value OutputGrad(GraphBuilder* b, const LayerGraph& layer, const char* name) const {
    const std::string grad = std::string(name) + "_grad";
    return IfPositive(layer.valid, this->Rows(b, grad.c_str()), 0);
  }
};

class CellGradKernel : public GradKernel<kCellGrad> {
 protected:
  void Build(GraphBuilder* b, const LayerGraph& layer) const override {
    const LayerGraphGrads grads = InputGrads(b, layer);
    b->Out(0, grads.c0);
    OutRows(b, 1, layer, grads.z);
    OutPeephole(b, 2, grads.weights);
  }
};

// Gradients of all inputs.
template <const OpVariant& kVariant>
class InputGradKernel : public GradKernel<kVariant> {
 protected:
  void Build(GraphBuilder* b, const LayerGraph& layer) const override {
    const LayerGraphGrads grads = this->InputGrads(b, layer);
    this->OutRows(b, 0, layer, grads.x);
    b->Out(1, grads.c0);
    b->Out(2, grads.h0);
    const GraphWeights& w = grads.weights;
    b->Out(3, w.input.is_scalar() ? w.recurrent : Concat({w.input, w.recurrent}, 0));
    this->OutPeephole(b, 4, w);
    b->Out(7, w.input_bias);
  }
};

// Registers a kernel for our op and, if `stock` is given, for stock TensorFlow's op, which does not
// allow bfloat16.
template <class K>
void RegisterOp(const OpVariant& variant, const char* stock, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (variant.sequence) host_memory.push_back("seq_len_max");
  RegisterMetalKernel<K>(variant.signature().op, type, host_memory);
  if (stock != nullptr && type != TF_BFLOAT16) {
    RegisterStockMetalKernel<K>(stock, type, host_memory);
  }
}

bool RegisterAll(TF_DataType type) {
  RegisterOp<ForwardKernel<kCell>>(kCell, "LSTMBlockCell", type);
  RegisterOp<ForwardKernel<kBlock>>(kBlock, "BlockLSTM", type);
  RegisterOp<ForwardKernel<kBlockV2>>(kBlockV2, "BlockLSTMV2", type);
  RegisterOp<CellGradKernel>(kCellGrad, "LSTMBlockCellGrad", type);
  RegisterOp<InputGradKernel<kBlockGrad>>(kBlockGrad, "BlockLSTMGrad", type);
  RegisterOp<InputGradKernel<kBlockGradV2>>(kBlockGradV2, "BlockLSTMGradV2", type);
  RegisterOp<InputGradKernel<kCellFullGrad>>(kCellFullGrad, nullptr, type);
  RegisterOp<InputGradKernel<kBlockFullGrad>>(kBlockFullGrad, nullptr, type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             metal::HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::block_cell
