// Kernels of LSTMBlockCell and its gradients on a Metal device. MPSGraph's own LSTM has no
// clipping, no peephole that reads the new cell state, and no output for each gate, so a step is a
// graph of elementary operations with the equations of core/lstm_cell.h. The ops over sequences
// have CPU kernels only.
#include <algorithm>
#include <string>

#include "core/lstm_cell.h"
#include "dialects/block_cell/problem.h"
#include "dialects/common/kernel_metal.h"

namespace tf_lstm_ops::block_cell {
namespace {

using metal::Concat;
using metal::Value;
using metal::Values;
using tf::KernelConstruction;
using tf::KernelContext;
using Cell = LstmCell<metal::GraphMath>;

// The part of one step that all ops share. Absent tensors are 0.
class Step {
 public:
  Step(GraphBuilder* b, const Attributes& attributes, const Sizes& sizes)
      : attributes_(attributes),
        batch_(sizes.batch),
        cell_(sizes.cell),
        clip_(attributes.cell_clip) {
    x = b->In("x");
    h = b->In("h_prev");
    cs = b->In("cs_prev");
    const Value w = b->In("w");  // the rows of x, then the rows of h
    w_x = Slice(w, 0, 0, sizes.input);
    w_h = Slice(w, 0, sizes.input, sizes.cell);
    for (const Peephole& peephole : kPeepholes) {
      peephole_[peephole.gate] = b->In(peephole.name);
    }
  }

  Cell::Outputs Forward(const Value& bias) const {
    const Value sum = MatMul(x, w_x) + MatMul(h, w_h) + bias;
    Value z[Cell::kPreActivations];
    for (int gate = 0; gate < Cell::kPreActivations; ++gate) {
      z[gate] = Slice(sum, 1, attributes_.order.block[gate] * cell_, cell_);
    }
    z[kGateF] = z[kGateF] + Value(attributes_.forget_bias);
    return Cell::Forward(z, cs, Parameters());
  }

  Cell::Gradients Backward(const Cell::Outputs& y, const Cell::Outputs& grads) const {
    return Cell::Backward(y, cs, grads, Parameters());
  }

  // The gradients of all pre-activations, [B, 4H].
  Value Joined(const Cell::Gradients& grads, MPSGraph* graph) const {
    Values blocks(Cell::kPreActivations);
    for (int gate = 0; gate < Cell::kPreActivations; ++gate) {
      blocks[attributes_.order.block[gate]] = BroadcastTo(graph, grads.z[gate], {batch_, cell_});
    }
    return Concat(blocks, 1);
  }

  // Sets outputs [first, first + 3): wci_grad, wcf_grad, wco_grad.
  void OutPeephole(GraphBuilder* b, int first, const Cell::Outputs& y,
                   const Cell::Gradients& grads) const {
    for (const Peephole& peephole : kPeepholes) {
      const Value& state = peephole.gate == Cell::kNewStatePeephole ? y.cs : cs;
      b->Out(first++, attributes_.use_peephole ? Sum(grads.z[peephole.gate] * state, 0) : 0);
    }
  }

  Value x, h, cs;  // [B, I], [B, H], [B, H]
  Value w_x, w_h;  // [I, 4H], [H, 4H]

 private:
  Cell::Parameters Parameters() const {
    return {attributes_.use_peephole ? peephole_ : nullptr,
            attributes_.cell_clip > 0 ? &clip_ : nullptr, nullptr};
  }

  const Attributes& attributes_;
  int64_t batch_, cell_;
  Value clip_;
  Value peephole_[Cell::kPreActivations];
};

void BuildForward(GraphBuilder* b, const Step& step) {
  const Cell::Outputs y = step.Forward(b->In("b"));
  for (int k = 0; k < Cell::kSavedCount; ++k) b->Out(k, y.*Cell::kSaved[k]);
  b->Out(kOutputH, y.h);
}

// The outputs of the forward op or, with the suffix "_grad", the gradients with respect to them.
Cell::Outputs Outputs(GraphBuilder* b, const std::string& suffix) {
  Cell::Outputs outputs;
  for (int k = 0; k < Cell::kSavedCount; ++k) {
    outputs.*Cell::kSaved[k] = b->In((kSavedNames[k] + suffix).c_str());
  }
  outputs.h = b->In(("h" + suffix).c_str());
  return outputs;
}

void BuildGrad(GraphBuilder* b, const Step& step) {
  const Cell::Outputs y = Outputs(b, "");
  const Cell::Gradients grads = step.Backward(y, Outputs(b, "_grad"));
  b->Out(0, grads.state);
  b->Out(1, step.Joined(grads, b->graph()));
  step.OutPeephole(b, 2, y, grads);
}

// The gradients of all inputs.
void BuildFullGrad(GraphBuilder* b, const Step& step) {
  const Cell::Outputs y = Outputs(b, "");
  const Cell::Gradients grads = step.Backward(y, Outputs(b, "_grad"));
  const Value z = step.Joined(grads, b->graph());
  b->Out(0, MatMul(z, Transposed(step.w_x)));
  b->Out(1, grads.state);
  b->Out(2, MatMul(z, Transposed(step.w_h)));
  const Value w_h = MatMul(Transposed(step.h), z);
  b->Out(3, step.x.is_scalar() ? w_h : Concat({MatMul(Transposed(step.x), z), w_h}, 0));
  step.OutPeephole(b, 4, y, grads);
  b->Out(7, Sum(z, 0));
}

template <const OpVariant& kVariant, void (*kBuild)(GraphBuilder*, const Step&)>
class CellKernel : public MetalKernel {
 public:
  CellKernel() : MetalKernel(kVariant.signature()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return MetalKernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    return Run(context, call, [&](GraphBuilder* b) {
      if (call.sizes.batch > 0) return kBuild(b, Step(b, attributes_, call.sizes));
      for (size_t n = 0; n < call.outputs().size(); ++n) b->Out(static_cast<int>(n), 0);
    });
  }

 private:
  Attributes attributes_;
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterMetalKernel<CellKernel<kCell, BuildForward>>(LSTMBlockCell().op),
    RegisterMetalKernel<CellKernel<kCellGrad, BuildGrad>>(LSTMBlockCellGrad().op),
    RegisterMetalKernel<CellKernel<kCellFullGrad, BuildFullGrad>>(LSTMBlockCellFullGrad().op)};

}  // namespace
}  // namespace tf_lstm_ops::block_cell
