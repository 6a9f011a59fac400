// Kernels of the block-cell dialect: whole sequences in one call, all cells by
// the same steps.
#include <array>
#include <string>

#include "dialects/common/call_cuda.h"
#include "backends/cuda/rnn.h"
#include "core/lstm_cell.h"
#include "dialects/block_cell/op_variants.h"

namespace tf_lstm_ops::cuda {
namespace {

using block_cell::OpVariant;
using block_cell::kBlock;
using block_cell::kBlockFullGrad;
using block_cell::kBlockGrad;
using block_cell::kBlockGradV2;
using block_cell::kBlockV2;
using block_cell::kCell;
using block_cell::kCellFullGrad;
using block_cell::kCellGrad;
using tf::KernelConstruction;
using tf::KernelContext;

constexpr int kGates = GateCount(CellKind::kLstm);
// By LstmSaved, as the ops name them; outputs in this order, then h.
constexpr const char* kRows[] = {"i", "cs", "f", "o", "ci", "co"};
constexpr int kRowCount = 6;
// By number in an op's gradients of them.
constexpr std::array<LstmGate, 3> kPeepholes = {kGateI, kGateF, kGateO};

template <class T, const OpVariant& kVariant>
class BlockCellKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kVariant);
  }

 protected:
  // Checks and fetches the inputs, makes the outputs.
  Status Begin(const KernelContext& context, Call* call, Layer<T>* layer) {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Begin(context));
    Steps& steps = layer->steps;
    steps.batch = call->sizes.batch;
    steps.time = kVariant.sequence ? call->sizes.time : 1;
    steps.steps = kVariant.sequence ? *call->In<int64_t>("seq_len_max") : 1;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        block_cell::CheckSeqLenMax(steps.steps, steps.time));
    SetLayer(*call, layer);
    return call->AllocateAll(context, tf::kDataType<T>);
  }

  // An output [T,B,width]: zero from seq_len_max on.
  Status OutRows(const Call& call, const Steps& steps, size_t n, T** out) {
    *out = call.Out<T>(n);
    if (steps.steps == steps.time || !*out) return Status();
    const int64_t width = call.output_size(n) / steps.time;
    return call.device().Zero(*out + steps.steps * width,
                              (steps.time - steps.steps) * width);
  }

  // Of w, or of its gradient: the rows of x, and after them those of h.
  template <class E>
  static void SetMatrices(const Sizes& sizes, E* w, RnnWeights<E>* weights) {
    weights->input = ByInput(w, kGates, sizes.cell);
    weights->recurrent =
        ByInput(w + sizes.input * kGates * sizes.cell, kGates, sizes.cell);
  }

  bool use_peephole() const { return attributes_.use_peephole; }

 private:
  void SetLayer(const Call& call, Layer<T>* layer) const {
    const Sizes& sizes = call.sizes;
    layer->config.input_size = sizes.input;
    layer->config.cell_size = sizes.cell;
    layer->config.hidden_size = sizes.cell;
    layer->config.gate_order = attributes_.order;
    layer->config.forget_bias = attributes_.forget_bias;
    layer->config.cell_clip = attributes_.cell_clip;
    layer->x = call.In<T>("x");
    layer->x_stride = sizes.input;
    layer->h0 = {call.In<T>("h_prev"), sizes.cell};
    layer->c0 = {call.In<T>("cs_prev"), sizes.cell};
    SetMatrices(sizes, call.In<T>("w"), &layer->weights);
    layer->weights.input_bias = call.In<T>("b");
    if (!use_peephole()) return;
    layer->weights.peephole[kGateI] = call.In<T>("wci");
    layer->weights.peephole[kGateF] = call.In<T>("wcf");
    layer->weights.peephole[kGateO] = call.In<T>("wco");
  }

  block_cell::Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
class ForwardKernel : public BlockCellKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(kVariant.signature());
    RnnForward<T> args;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &args));
    for (int k = 0; k < kRowCount; ++k) {
      args.kept.stride[k] = call.sizes.cell;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          this->OutRows(call, args.steps, k, &args.kept.data[k]));
    }
    args.h_stride = call.sizes.cell;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->OutRows(call, args.steps, kRowCount, &args.h));
    return Forward(call.device(), args);
  }
};

// What the gradient ops have in common.
template <class T, const OpVariant& kVariant>
class GradKernel : public BlockCellKernel<T, kVariant> {
 protected:
  Status BeginGradient(const KernelContext& context, Call* call,
                       RnnBackward<T>* args) {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, call, args));
    const int64_t cell = call->sizes.cell;
    const auto gradient = [&](const char* row) {
      return call->In<T>((std::string(row) + "_grad").c_str());
    };
    for (int k = 0; k < kRowCount; ++k) {
      args->kept.data[k] = call->In<T>(kRows[k]);
      args->grad.data[k] = gradient(kRows[k]);
      args->kept.stride[k] = args->grad.stride[k] = cell;
    }
    args->h = call->In<T>("h");
    args->h_grad = gradient("h");
    args->h_stride = args->h_grad_stride = cell;
    return Status();
  }

  // wci_grad, wcf_grad, wco_grad, from output `first` on.
  Status SetPeephole(const Call& call, size_t first, RnnBackward<T>* args) {
    for (size_t n = 0; n < kPeepholes.size(); ++n) {
      T* out = call.Out<T>(first + n);
      if (this->use_peephole()) {
        args->weights_grad.peephole[kPeepholes[n]] = out;
      } else {
        TF_LSTM_OPS_RETURN_IF_ERROR(
            call.device().Zero(out, call.output_size(first + n)));
      }
    }
    return Status();
  }
};

template <class T>
class CellGradKernel : public GradKernel<T, kCellGrad> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(kCellGrad.signature());
    RnnBackward<T> args;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGradient(context, &call, &args));
    args.c0_grad = {call.Out<T>(0), call.sizes.cell};
    args.z_grad = call.Out<T>(1);
    TF_LSTM_OPS_RETURN_IF_ERROR(this->SetPeephole(call, 2, &args));
    return Backward(call.device(), args);
  }
};

// Gradients of all inputs.
template <class T, const OpVariant& kVariant>
class InputGradKernel : public GradKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(kVariant.signature());
    RnnBackward<T> args;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGradient(context, &call, &args));
    TF_LSTM_OPS_RETURN_IF_ERROR(this->OutRows(call, args.steps, 0, &args.x_grad));
    args.c0_grad = {call.Out<T>(1), call.sizes.cell};
    args.h0_grad = {call.Out<T>(2), call.sizes.cell};
    this->SetMatrices(call.sizes, call.Out<T>(3), &args.weights_grad);
    TF_LSTM_OPS_RETURN_IF_ERROR(this->SetPeephole(call, 4, &args));
    args.weights_grad.input_bias = call.Out<T>(7);
    return Backward(call.device(), args);
  }
};

template <class K>
void RegisterVariant(const OpVariant& form, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (form.sequence) host_memory.push_back("seq_len_max");
  Register<K>(form.signature().op, type, host_memory);
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterVariant<ForwardKernel<T, kCell>>(kCell, kType);
  RegisterVariant<ForwardKernel<T, kBlock>>(kBlock, kType);
  RegisterVariant<ForwardKernel<T, kBlockV2>>(kBlockV2, kType);
  RegisterVariant<CellGradKernel<T>>(kCellGrad, kType);
  RegisterVariant<InputGradKernel<T, kBlockGrad>>(kBlockGrad, kType);
  RegisterVariant<InputGradKernel<T, kBlockGradV2>>(kBlockGradV2, kType);
  RegisterVariant<InputGradKernel<T, kCellFullGrad>>(kCellFullGrad, kType);
  RegisterVariant<InputGradKernel<T, kBlockFullGrad>>(kBlockFullGrad, kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cuda
