#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/lstm.h"
#include "backends/cpu/staging.h"
#include "core/lstm.h"
#include "dialects/keras/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::keras {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

enum Input {
  kX,
  kMask,
  kInitialH,
  kInitialC,
  kKernel,
  kRecurrentKernel,
  kBias,
  kPeephole,
  kInputDropout,
  kRecurrentDropout,
  kOutput,  // from here on the gradient's
  kReserve,
  kOutputGrad,
  kFinalHGrad,
  kFinalCGrad,
};

struct Attributes {
  float cell_clip = 0;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  bool return_sequences = true;

  Status Init(const KernelConstruction& construction) {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("cell_clip", &cell_clip));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("go_backwards", &go_backwards));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("zero_output_for_mask", &zero_output_for_mask));
    return construction.GetAttr("return_sequences", &return_sequences);
  }
};

// What the forward pass leaves for the backward pass: i, cs, f, o and ci of
// each entry of the schedule, [V,5,H]; after them, where the output has the
// last step only, h of all steps, [B,T,H].
struct ReserveLayout {
  static constexpr int64_t kRows = 5;

  int64_t steps_size;
  int64_t h_size;

  ReserveLayout(const Schedule& schedule, const Sizes& sizes,
                bool return_sequences)
      : steps_size(schedule.size() * kRows * sizes.cell),
        h_size(return_sequences ? 0 : sizes.batch * sizes.time * sizes.cell) {}

  int64_t size() const { return steps_size + h_size; }

  template <class T>
  static StepRows<T> Steps(T* reserve, int64_t cell) {
    StepRows<T> steps;
    steps.stride = kRows * cell;
    steps.compact = true;
    steps.i = reserve;
    steps.cs = reserve + cell;
    steps.f = reserve + 2 * cell;
    steps.o = reserve + 3 * cell;
    steps.ci = reserve + 4 * cell;
    return steps;
  }
};

template <class T>
struct Call {
  using Compute = typename cpu::Staging<T>::Compute;

  const Signature& signature;
  std::vector<Tensor> inputs;
  Sizes sizes;
  Schedule schedule;
  cpu::Staging<T> staging;

  explicit Call(const Signature& s) : signature(s) {}

  Status Begin(const KernelContext& context, const Attributes& attributes) {
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Inputs(signature, &inputs, &sizes));
    const bool* mask =
        Absent(kMask) ? nullptr : inputs[kMask].template data<bool>();
    schedule = Schedule::BatchMajor(sizes.batch, sizes.time, mask,
                                    attributes.go_backwards);
    return Status();
  }

  bool Absent(size_t n) const {
    return IsAbsent(signature.inputs[n], inputs[n].shape());
  }
  const T* Data(size_t n) const { return inputs[n].template data<T>(); }
  const Compute* In(size_t n) {
    return Absent(n) ? nullptr : staging.In(Data(n), inputs[n].size());
  }

  template <class Args>
  void SetInputs(const Attributes& attributes, Args* args) {
    args->config.input_size = sizes.input;
    args->config.cell_size = sizes.cell;
    args->config.gate_order = kOrderIFCO;
    args->config.cell_clip = attributes.cell_clip;
    args->schedule = &schedule;
    args->x = In(kX);
    args->h0 = In(kInitialH);
    args->c0 = In(kInitialC);
    args->weights.input = In(kKernel);
    args->weights.recurrent = In(kRecurrentKernel);
    args->weights.bias = In(kBias);
    if (const Compute* peephole = In(kPeephole)) {
      args->weights.wci = peephole;
      args->weights.wcf = peephole + sizes.cell;
      args->weights.wco = peephole + 2 * sizes.cell;
    }
    args->dropout.input = In(kInputDropout);
    args->dropout.recurrent = In(kRecurrentDropout);
  }
};

// Visits every step of every sequence in the order of processing, with the
// output row of the row's latest valid step up to then, or -1.
template <class Visit>
void ForEachStep(const Schedule& schedule, const Visit& visit) {
  const int64_t time = schedule.steps;
  std::vector<int64_t> latest(schedule.batch, -1);
  for (int64_t s = 0; s < time; ++s) {
    for (int64_t e = schedule.begin[s]; e < schedule.begin[s + 1]; ++e) {
      latest[schedule.batch_row[e]] = schedule.output_row[e];
    }
    for (int64_t b = 0; b < schedule.batch; ++b) {
      visit(b * time + s, latest[b]);
    }
  }
}

template <class T>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(KerasLSTM());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    const Sizes& sizes = call.sizes;
    const bool sequences = attributes_.return_sequences;
    const ReserveLayout layout(call.schedule, sizes, sequences);
    constexpr TF_DataType kType = tf::kDataType<T>;
    const Shape state({sizes.batch, sizes.cell});
    Tensor output, final_h, final_c, reserve;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        0, kType, Shape({sizes.batch, sequences ? sizes.time : 1, sizes.cell}),
        &output));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(1, kType, state, &final_h));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(2, kType, state, &final_c));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        3, kType, Shape({training_ ? layout.size() : 0}), &reserve));

    const int64_t rows = sizes.batch * sizes.time;
    const AlignedBuffer h_rows(
        sequences || training_ ? 0 : rows * sizes.cell * sizeof(T));
    T* h = sequences   ? output.data<T>()
           : training_ ? reserve.data<T>() + layout.steps_size
                       : static_cast<T*>(h_rows.data());
    LstmForward<typename Call<T>::Compute> args;
    call.SetInputs(attributes_, &args);
    args.h = call.staging.Out(h, rows * sizes.cell);
    args.final_c =
        call.staging.Out(final_c.data<T>(), sizes.batch * sizes.cell);
    if (training_) {
      args.steps = ReserveLayout::Steps(
          call.staging.Out(reserve.data<T>(), layout.steps_size), sizes.cell);
    }
    cpu::Forward(args, cpu::ThreadCount(ConfiguredThreads(context)));
    call.staging.Finish();
    FinalH(call, h, final_h.data<T>());
    FillMasked(call, h);
    if (!sequences) LastStep(call, h, output.data<T>());
    return Status();
  }

 private:
  static void CopyRow(const T* from, int64_t cell, T* to) {
    std::copy(from, from + cell, to);
  }

  // The state after the last valid step; the initial one where there is none.
  void FinalH(const Call<T>& call, const T* h, T* final_h) const {
    const int64_t cell = call.sizes.cell;
    for (int64_t b = 0; b < call.sizes.batch; ++b) {
      const int64_t last = call.schedule.last[b];
      CopyRow(last < 0 ? call.Data(kInitialH) + b * cell
                       : h + call.schedule.output_row[last] * cell,
              cell, final_h + b * cell);
    }
  }

  // A masked step repeats the output before it, zero where there is none, or is
  // zero where that is asked for.
  void FillMasked(const Call<T>& call, T* h) const {
    const int64_t cell = call.sizes.cell;
    ForEachStep(call.schedule, [&](int64_t row, int64_t latest) {
      if (latest == row) return;
      T* masked = h + row * cell;
      if (latest < 0 || attributes_.zero_output_for_mask) {
        std::fill(masked, masked + cell, T{});
      } else {
        CopyRow(h + latest * cell, cell, masked);
      }
    });
  }

  // The last step's output; zero where there are no steps.
  static void LastStep(const Call<T>& call, const T* h, T* output) {
    const int64_t cell = call.sizes.cell, time = call.sizes.time;
    for (int64_t b = 0; b < call.sizes.batch; ++b) {
      T* row = output + b * cell;
      if (time == 0) {
        std::fill(row, row + cell, T{});
      } else {
        CopyRow(h + (b * time + time - 1) * cell, cell, row);
      }
    }
  }

  Attributes attributes_;
  bool training_ = true;
};

template <class T>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(KerasLSTMGrad());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckSaved(call));
    std::vector<Tensor> outputs;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Outputs(
        call.signature, call.inputs, call.sizes, tf::kDataType<T>, &outputs));
    LstmBackward<C> args;
    call.SetInputs(attributes_, &args);
    SetSaved(&call, &args);
    SetStates(&call, outputs, &args);
    const auto out = [&](size_t n) {
      return call.staging.Out(outputs[n].data<T>(), outputs[n].size());
    };
    args.dx = out(0);
    if (call.schedule.size() < call.sizes.batch * call.sizes.time) {
      std::fill(args.dx, args.dx + outputs[0].size(), C(0));
    }
    args.dinput = out(3);
    args.drecurrent = out(4);
    if (args.weights.bias) args.dbias = out(5);
    if (args.weights.has_peephole()) {
      args.dwci = out(6);
      args.dwcf = args.dwci + call.sizes.cell;
      args.dwco = args.dwci + 2 * call.sizes.cell;
    }
    args.dz =
        call.staging.Scratch(call.schedule.size() * kGates * call.sizes.cell);
    cpu::Backward(args, cpu::ThreadCount(ConfiguredThreads(context)));
    call.staging.Finish();
    return Status();
  }

 private:
  using C = typename Call<T>::Compute;

  ReserveLayout Layout(const Call<T>& call) const {
    return ReserveLayout(call.schedule, call.sizes,
                         attributes_.return_sequences);
  }

  // The sizes that the signature cannot tell.
  Status CheckSaved(const Call<T>& call) const {
    const int64_t steps =
        attributes_.return_sequences ? call.sizes.time : int64_t{1};
    for (const Input n : {kOutput, kOutputGrad}) {
      const int64_t got = call.inputs[n].shape().dim(1);
      if (got != steps) {
        return InvalidArgument(call.signature.inputs[n].name,
                               ".dim_size(1) != time_length: ", got, " vs. ",
                               steps);
      }
    }
    const int64_t want = Layout(call).size();
    if (call.inputs[kReserve].size() != want) {
      return InvalidArgument("reserve.dim_size(0) != ", want, ": ",
                             call.inputs[kReserve].size(), " vs. ", want,
                             "; it must come from a forward call with "
                             "training=True and the same arguments");
    }
    return Status();
  }

  void SetSaved(Call<T>* call, LstmBackward<C>* args) const {
    const ReserveLayout layout = Layout(*call);
    const C* reserve = call->staging.In(call->Data(kReserve), layout.size());
    args->steps = ReserveLayout::Steps(reserve, call->sizes.cell);
    args->h = attributes_.return_sequences ? call->In(kOutput)
                                           : reserve + layout.steps_size;
    args->h_bar = StepGradients(call);
  }

  // The gradient of each step's h, by output row: that of a masked step's
  // output belongs to the step it repeats. Null where the output is the last
  // step's alone; its gradient then goes to the final state's.
  const C* StepGradients(Call<T>* call) const {
    if (!attributes_.return_sequences) return nullptr;
    const C* output_grad = call->In(kOutputGrad);
    const int64_t cell = call->sizes.cell;
    const int64_t rows = call->sizes.batch * call->sizes.time;
    if (call->schedule.size() == rows || attributes_.zero_output_for_mask) {
      return output_grad;
    }
    C* sums = call->staging.Scratch(rows * cell);
    std::copy(output_grad, output_grad + rows * cell, sums);
    ForEachStep(call->schedule, [&](int64_t row, int64_t latest) {
      if (latest < 0 || latest == row) return;
      for (int64_t u = 0; u < cell; ++u) {
        sums[latest * cell + u] += output_grad[row * cell + u];
      }
    });
    return sums;
  }

  // Gradients of the final states, where the engine turns them into those of
  // the initial ones.
  void SetStates(Call<T>* call, const std::vector<Tensor>& outputs,
                 LstmBackward<C>* args) const {
    const int64_t cell = call->sizes.cell;
    const int64_t size = call->sizes.batch * cell;
    const C* final_h = call->In(kFinalHGrad);
    const C* final_c = call->In(kFinalCGrad);
    args->dh = call->staging.Out(outputs[1].data<T>(), size);
    args->dc = call->staging.Out(outputs[2].data<T>(), size);
    std::copy(final_h, final_h + size, args->dh);
    std::copy(final_c, final_c + size, args->dc);
    if (attributes_.return_sequences) return;
    const C* last_grad = call->In(kOutputGrad);
    const int64_t time = call->sizes.time;
    ForEachStep(call->schedule, [&](int64_t row, int64_t latest) {
      if (row % time != time - 1 || latest < 0) return;
      if (latest != row && attributes_.zero_output_for_mask) return;
      const int64_t at = row / time * cell;
      for (int64_t u = 0; u < cell; ++u) args->dh[at + u] += last_grad[at + u];
    });
  }

  Attributes attributes_;
};

template <class T>
bool RegisterAll() {
  tf::RegisterKernel<ForwardKernel<T>>(KerasLSTM().op, "CPU", tf::kDataType<T>);
  tf::RegisterKernel<GradKernel<T>>(KerasLSTMGrad().op, "CPU",
                                    tf::kDataType<T>);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
