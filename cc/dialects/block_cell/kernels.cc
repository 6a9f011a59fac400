#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/rnn.h"
#include "backends/cpu/staging.h"
#include "core/lstm_cell.h"
#include "core/rnn.h"
#include "dialects/block_cell/c_api.h"
#include "dialects/block_cell/forms.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::block_cell {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int kGates = GateCount(CellKind::kLstm);

// One call: its tensors in the engine's type and the steps to take.
template <class T>
struct Call {
  using Compute = typename cpu::Staging<T>::Compute;

  Tensors inputs, outputs;
  Sizes sizes;
  Schedule schedule;
  cpu::Staging<T> staging;

  const Compute* In(size_t n) {
    return staging.In(inputs[n].template data<T>(), inputs[n].size());
  }
  // The first `schedule` rows of a [T,B,width] argument.
  const Compute* InRows(size_t n, int64_t width) {
    return staging.In(inputs[n].template data<T>(), schedule.size() * width);
  }
  Compute* Out(size_t n) {
    return staging.Out(outputs[n].template data<T>(), outputs[n].size());
  }
  // Rows past the schedule are zero.
  Compute* OutRows(size_t n, int64_t width) {
    T* data = outputs[n].template data<T>();
    const int64_t used = schedule.size() * width;
    std::fill(data + used, data + outputs[n].size(), T{});
    return staging.Out(data, used);
  }
};

// Positions of a cell's eight inputs; a sequence's come after seq_len_max.
enum Input { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB, kInputs };

template <class T, const Form& kForm>
class BlockCellKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    Attributes attributes;
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes.Init(construction, kForm));
    config_.gate_order = attributes.order;
    config_.forget_bias = attributes.forget_bias;
    config_.cell_clip = attributes.cell_clip;
    use_peephole_ = attributes.use_peephole;
    return Status();
  }

 protected:
  using Compute_t = typename Call<T>::Compute;
  static constexpr size_t kFirst = kForm.sequence ? 1 : 0;

  // Checks and fetches the inputs, makes the outputs.
  Status Begin(const KernelContext& context, Call<T>* call) {
    const Signature& signature = kForm.signature();
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.Inputs(signature, &call->inputs, &call->sizes));
    const int64_t steps =
        kForm.sequence ? *call->inputs[0].template data<int64_t>() : 1;
    if (kForm.sequence) {
      TF_LSTM_OPS_RETURN_IF_ERROR(CheckSeqLenMax(steps, call->sizes.time));
    }
    call->schedule = Schedule::TimeMajor(steps, call->sizes.batch);
    return context.Outputs(signature, call->inputs, call->sizes,
                           tf::kDataType<T>, &call->outputs);
  }

  // The fields that forward and backward share.
  template <class Args>
  void SetInputs(Call<T>* call, Args* args) const {
    args->config = config_;
    args->config.input_size = call->sizes.input;
    args->config.cell_size = call->sizes.cell;
    args->config.hidden_size = call->sizes.cell;
    args->h_stride = call->sizes.cell;
    args->schedule = &call->schedule;
    args->x = call->InRows(kFirst + kX, call->sizes.input);
    args->x_stride = call->sizes.input;
    args->c0 = call->In(kFirst + kCsPrev);
    args->h0 = call->In(kFirst + kHPrev);
    args->config.bfloat16 = std::is_same_v<T, BFloat16>;
    args->weights.input = Matrices(call, 0, call->sizes.input);
    args->weights.recurrent =
        Matrices(call, call->sizes.input, call->sizes.cell);
    args->weights.input_bias = call->In(kFirst + kB);
    if (use_peephole_) {
      args->weights.peephole[kPartI] = call->In(kFirst + kWci);
      args->weights.peephole[kPartF] = call->In(kFirst + kWcf);
      args->weights.peephole[kPartO] = call->In(kFirst + kWco);
    }
  }

  // So many rows of w: first come those of x, then those of h.
  static GateMatrices<const Compute_t> Matrices(Call<T>* call, int64_t first,
                                                int64_t rows) {
    const int64_t cell = call->sizes.cell, row = kGates * cell;
    return call->staging.Weights(
        call->inputs[kFirst + kW].template data<T>() + first * row, rows * row,
        [&](const auto* data) { return ByInput(data, kGates, cell); });
  }

  RnnConfig config_;
  bool use_peephole_ = false;
};

template <class T, const Form& kForm>
class ForwardKernel : public BlockCellKernel<T, kForm> {
 public:
  Status Compute(const KernelContext& context) override {
    Call<T> call;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call));
    RnnForward<typename Call<T>::Compute> args;
    this->SetInputs(&call, &args);
    const int64_t cell = call.sizes.cell;
    args.steps.Set(kRowI, call.OutRows(0, cell), cell);
    args.steps.Set(kRowCs, call.OutRows(1, cell), cell);
    args.steps.Set(kRowF, call.OutRows(2, cell), cell);
    args.steps.Set(kRowO, call.OutRows(3, cell), cell);
    args.steps.Set(kRowCi, call.OutRows(4, cell), cell);
    args.steps.Set(kRowCo, call.OutRows(5, cell), cell);
    args.h = call.OutRows(6, cell);
    cpu::Forward(args, cpu::ThreadCount(this->ConfiguredThreads(context)));
    call.staging.Finish();
    return Status();
  }
};

// What the gradient ops have in common.
template <class T, const Form& kForm>
class GradKernel : public BlockCellKernel<T, kForm> {
 protected:
  using C = typename Call<T>::Compute;
  // Position of the forward outputs i, cs, f, o, ci, co (and h, if given).
  static constexpr size_t kOutputs =
      BlockCellKernel<T, kForm>::kFirst + kInputs;

  void SetSteps(Call<T>* call, RnnBackward<C>* args) const {
    const int64_t cell = call->sizes.cell;
    args->steps.Set(kRowI, call->InRows(kOutputs + 0, cell), cell);
    args->steps.Set(kRowCs, call->InRows(kOutputs + 1, cell), cell);
    args->steps.Set(kRowF, call->InRows(kOutputs + 2, cell), cell);
    args->steps.Set(kRowO, call->InRows(kOutputs + 3, cell), cell);
    args->steps.Set(kRowCi, call->InRows(kOutputs + 4, cell), cell);
    args->steps.Set(kRowCo, call->InRows(kOutputs + 5, cell), cell);
  }

  // Zero gradients of the final states, in the memory of the initial ones'.
  void SetStates(C* dc, C* dh, const Sizes& sizes, RnnBackward<C>* args) const {
    args->dc = dc;
    args->dh = dh;
    std::fill(dc, dc + sizes.batch * sizes.cell, C(0));
    std::fill(dh, dh + sizes.batch * sizes.cell, C(0));
  }

  // wci_grad, wcf_grad, wco_grad at outputs [first, first + 3).
  void SetPeephole(Call<T>* call, size_t first, RnnBackward<C>* args) const {
    if (this->use_peephole_) {
      args->gradients.peephole[kPartI] = call->Out(first);
      args->gradients.peephole[kPartF] = call->Out(first + 1);
      args->gradients.peephole[kPartO] = call->Out(first + 2);
      return;
    }
    for (size_t n = first; n < first + 3; ++n) {
      T* data = call->outputs[n].template data<T>();
      std::fill(data, data + call->outputs[n].size(), T{});
    }
  }

  // x_grad, cs_prev_grad, h_prev_grad, w_grad, wc*_grad, b_grad.
  void SetInputGradients(Call<T>* call, RnnBackward<C>* args) const {
    const Sizes& sizes = call->sizes;
    args->dx = call->OutRows(0, sizes.input);
    SetStates(call->Out(1), call->Out(2), sizes, args);
    C* w = call->Out(3);
    args->gradients.input = ByInput(w, kGates, sizes.cell);
    args->gradients.recurrent =
        ByInput(w + sizes.input * kGates * sizes.cell, kGates, sizes.cell);
    SetPeephole(call, 4, args);
    args->gradients.input_bias = call->Out(7);
  }

  Status Finish(const KernelContext& context, Call<T>* call,
                const RnnBackward<C>& args) {
    cpu::Backward(args, cpu::ThreadCount(this->ConfiguredThreads(context)));
    call->staging.Finish();
    return Status();
  }
};

template <class T>
class CellGradKernel : public GradKernel<T, kCellGrad> {
 public:
  Status Compute(const KernelContext& context) override {
    Call<T> call;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call));
    RnnBackward<typename Call<T>::Compute> args;
    this->SetInputs(&call, &args);
    this->SetSteps(&call, &args);
    const int64_t cell = call.sizes.cell;
    args.bar.Set(kRowCs, call.InRows(this->kOutputs + 6, cell), cell);
    args.h_bar = call.InRows(this->kOutputs + 7, cell);
    this->SetStates(call.Out(0), call.staging.Scratch(call.outputs[0].size()),
                    call.sizes, &args);
    args.wants_initial_dh = false;
    args.dz = call.Out(1);
    this->SetPeephole(&call, 2, &args);
    return this->Finish(context, &call, args);
  }
};

// Gradients of all inputs; from those of cs and h, as the stock ops take them,
// or from those of all seven outputs.
template <class T, const Form& kForm>
class InputGradKernel : public GradKernel<T, kForm> {
 public:
  Status Compute(const KernelContext& context) override {
    Call<T> call;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call));
    RnnBackward<typename Call<T>::Compute> args;
    this->SetInputs(&call, &args);
    this->SetSteps(&call, &args);
    args.h = call.InRows(this->kOutputs + 6, call.sizes.cell);
    SetUpstream(&call, &args);
    this->SetInputGradients(&call, &args);
    return this->Finish(context, &call, args);
  }

 private:
  void SetUpstream(Call<T>* call,
                   RnnBackward<typename Call<T>::Compute>* args) const {
    const int64_t cell = call->sizes.cell;
    size_t next = this->kOutputs + 7;
    if (kForm.from_all_outputs)
      args->bar.Set(kRowI, call->InRows(next++, cell), cell);
    args->bar.Set(kRowCs, call->InRows(next++, cell), cell);
    if (kForm.from_all_outputs) {
      args->bar.Set(kRowF, call->InRows(next++, cell), cell);
      args->bar.Set(kRowO, call->InRows(next++, cell), cell);
      args->bar.Set(kRowCi, call->InRows(next++, cell), cell);
      args->bar.Set(kRowCo, call->InRows(next++, cell), cell);
    }
    args->h_bar = call->InRows(next, cell);
  }
};

template <class K>
void Register(const Form& form, TF_DataType type) {
  tf::RegisterKernel<K>(form.signature().op, "CPU", type);
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  Register<ForwardKernel<T, kCell>>(kCell, kType);
  Register<ForwardKernel<T, kBlock>>(kBlock, kType);
  Register<ForwardKernel<T, kBlockV2>>(kBlockV2, kType);
  Register<CellGradKernel<T>>(kCellGrad, kType);
  Register<InputGradKernel<T, kBlockGrad>>(kBlockGrad, kType);
  Register<InputGradKernel<T, kBlockGradV2>>(kBlockGradV2, kType);
  Register<InputGradKernel<T, kCellFullGrad>>(kCellFullGrad, kType);
  Register<InputGradKernel<T, kBlockFullGrad>>(kBlockFullGrad, kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

// Under the name of a stock op, whose own kernel has the priority 0.
template <class K>
Status RegisterAbove(const char* stock, TF_DataType type) {
  return tf::RegisterKernel<K>(stock, "CPU", type, 1);
}

template <class T>
Status RegisterAboveStock() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      (RegisterAbove<ForwardKernel<T, kCell>>("LSTMBlockCell", kType)));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      RegisterAbove<CellGradKernel<T>>("LSTMBlockCellGrad", kType));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      (RegisterAbove<ForwardKernel<T, kBlock>>("BlockLSTM", kType)));
  return RegisterAbove<InputGradKernel<T, kBlockGrad>>("BlockLSTMGrad", kType);
}

Status OverrideStock() {
  TF_LSTM_OPS_RETURN_IF_ERROR(RegisterAboveStock<float>());
  return RegisterAboveStock<Half>();
}

}  // namespace
}  // namespace tf_lstm_ops::block_cell

const char* tf_lstm_ops_override_stock() {
  // Twice the same kernel at the same priority would be ambiguous.
  static const tf_lstm_ops::Status status =
      tf_lstm_ops::block_cell::OverrideStock();
  return status.ok() ? nullptr : status.message().c_str();
}
