// Kernels of the block-cell dialect. MPSGraph's own LSTM knows neither the
// clip, nor a peephole that sees the new cell state, nor outputs of all gates:
// every step is composed.
#include <string>

#include "dialects/common/kernel_metal.h"
#include "backends/metal/rnn.h"
#include "core/lstm_cell.h"
#include "dialects/block_cell/op_variants.h"

namespace tf_lstm_ops::metal {
namespace {

using block_cell::OpVariant;
using tf::KernelConstruction;
using tf::KernelContext;

// By LstmSaved, as the ops name them.
constexpr const char* kRows[] = {"i", "cs", "f", "o", "ci", "co"};
constexpr int kRowCount = 6;

template <const OpVariant& kVariant>
class BlockCellKernel : public Kernel {
 public:
  BlockCellKernel() : Kernel(kVariant.signature()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return Kernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call call(signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    int64_t steps = 1;
    if (kVariant.sequence) {
      steps = *call.Find("seq_len_max")->data<int64_t>();
      TF_LSTM_OPS_RETURN_IF_ERROR(block_cell::CheckSeqLenMax(steps, call.sizes.time));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    const bool has_padding = kVariant.sequence && steps < call.sizes.time;
    if (has_padding) MakeValid(steps, &call);
    return Run(context, call, [&](Builder* b) { Build(b, MakeLayer(b, call, has_padding)); });
  }

 protected:
  virtual void Build(Builder* b, const Layer& layer) const = 0;

  bool use_peephole() const { return attributes_.use_peephole; }

  // An argument of each step, [T,B,.], also where the op has one step only.
  static Value Rows(Builder* b, const char* name) {
    const Value rows = b->In(name);
    if (kVariant.sequence || rows.is_number()) return rows;
    return Reshape(rows, {1, rows.dim(0), rows.dim(1)});
  }
  // The way back, for results; zero past seq_len_max.
  static void OutRows(Builder* b, int n, const Layer& layer, const Value& rows) {
    const Value valid = IfPositive(layer.valid, rows, 0);
    if (kVariant.sequence || valid.is_number()) return b->Out(n, valid);
    b->Out(n, Reshape(valid, {valid.dim(1), valid.dim(2)}));
  }

 private:
  static void MakeValid(int64_t steps, Call* call) {
    const Sizes& sizes = call->sizes;
    Call::Made valid = {"valid", {sizes.time, sizes.batch, 1}, {}};
    valid.numbers.resize(sizes.time * sizes.batch, 0);
    std::fill_n(valid.numbers.begin(), steps * sizes.batch, 1.0f);
    call->made.push_back(std::move(valid));
  }

  Layer MakeLayer(Builder* b, const Call& call, bool has_padding) const {
    const Sizes& sizes = call.sizes;
    Layer layer;
    layer.graph = b->graph();
    layer.config.input_size = sizes.input;
    layer.config.cell_size = sizes.cell;
    layer.config.hidden_size = sizes.cell;
    layer.config.gate_order = attributes_.order;
    layer.config.forget_bias = attributes_.forget_bias;
    layer.config.cell_clip = attributes_.cell_clip;
    layer.time = kVariant.sequence ? sizes.time : 1;
    layer.batch = sizes.batch;
    if (has_padding) layer.valid = b->Made("valid");
    layer.exact_steps = true;
    layer.x = Rows(b, "x");
    layer.h0 = b->In("h_prev");
    layer.c0 = b->In("cs_prev");
    const Value w = b->In("w");  // rows of x, then of h
    layer.weights.input = Slice(w, 0, 0, sizes.input);
    layer.weights.recurrent = Slice(w, 0, sizes.input, sizes.cell);
    layer.weights.input_bias = b->In("b");
    if (use_peephole()) {
      layer.weights.peephole[kGateI] = b->In("wci");
      layer.weights.peephole[kGateF] = b->In("wcf");
      layer.weights.peephole[kGateO] = b->In("wco");
    }
    return layer;
  }

  block_cell::Attributes attributes_;
};

template <const OpVariant& kVariant>
class ForwardKernel : public BlockCellKernel<kVariant> {
 protected:
  void Build(Builder* b, const Layer& layer) const override {
    const LayerOutputs outputs = Forward(layer);
    for (int k = 0; k < kRowCount; ++k) {
      this->OutRows(b, k, layer, outputs.steps[k]);
    }
    this->OutRows(b, kRowCount, layer, outputs.h);
  }
};

template <const OpVariant& kVariant>
class GradKernel : public BlockCellKernel<kVariant> {
 protected:
  LayerGradients Gradients(Builder* b, const Layer& layer) const {
    LayerOutputs outputs;
    LayerUpstream upstream;
    for (int k = 0; k < kRowCount; ++k) {
      outputs.steps[k] = this->Rows(b, kRows[k]);
      const bool has_gradient = k == kSavedCs || kVariant.from_all_outputs;
      if (has_gradient) upstream.steps[k] = Upstream(b, layer, kRows[k]);
    }
    upstream.h = Upstream(b, layer, "h");
    if (kVariant.sequence) outputs.h = this->Rows(b, "h");
    return Backward(layer, outputs, upstream);
  }

  void OutPeephole(Builder* b, int first, const LayerGradients& g) const {
    b->Out(first, g.weights.peephole[kGateI]);
    b->Out(first + 1, g.weights.peephole[kGateF]);
    b->Out(first + 2, g.weights.peephole[kGateO]);
  }

 private:
  // Past seq_len_max nothing counts.
  Value Upstream(Builder* b, const Layer& layer, const char* name) const {
    const std::string gradient = std::string(name) + "_grad";
    return IfPositive(layer.valid, this->Rows(b, gradient.c_str()), 0);
  }
};

class CellGradKernel : public GradKernel<block_cell::kCellGrad> {
 protected:
  void Build(Builder* b, const Layer& layer) const override {
    const LayerGradients g = Gradients(b, layer);
    b->Out(0, g.c0);
    OutRows(b, 1, layer, g.dz);
    OutPeephole(b, 2, g);
  }
};

// Gradients of all inputs.
template <const OpVariant& kVariant>
class InputGradKernel : public GradKernel<kVariant> {
 protected:
  void Build(Builder* b, const Layer& layer) const override {
    const LayerGradients g = this->Gradients(b, layer);
    this->OutRows(b, 0, layer, g.x);
    b->Out(1, g.c0);
    b->Out(2, g.h0);
    const Weights& w = g.weights;
    b->Out(3, w.input.is_number() ? w.recurrent : Concat({w.input, w.recurrent}, 0));
    this->OutPeephole(b, 4, g);
    b->Out(7, w.input_bias);
  }
};

// Stock TensorFlow has the ops of single steps and BlockLSTM in half and float;
// the plugins have none of them.
template <class K>
void RegisterOp(const OpVariant& form, const char* stock, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (form.sequence) host_memory.push_back("seq_len_max");
  Register<K>(form.signature().op, type, host_memory);
  if (stock != nullptr && type != TF_BFLOAT16) {
    RegisterAbove<K>(stock, type, host_memory);
  }
}

bool RegisterAll(TF_DataType type) {
  using namespace block_cell;  // the forms
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
                                             HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::metal
