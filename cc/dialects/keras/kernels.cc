#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "backends/cpu/rnn.h"
#include "core/rnn.h"
#include "dialects/arguments.h"
#include "dialects/keras/forms.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::keras {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

// By part, of rows i, f, o.
template <class T>
std::array<T*, kMaxParts> Peepholes(T* rows, int64_t cell) {
  std::array<T*, kMaxParts> peephole = {};
  peephole[kPartI] = rows;
  peephole[kPartF] = rows + cell;
  peephole[kPartO] = rows + 2 * cell;
  return peephole;
}

// What the forward pass leaves for the backward pass: the rows that the cell
// keeps of each entry of the schedule, [V,rows,H]; after them, where the output
// has the last step only, h of all steps, [B,T,H].
struct ReserveLayout {
  int64_t steps_size;
  int64_t h_size;

  ReserveLayout(const Schedule& schedule, const Sizes& sizes, CellKind cell,
                bool return_sequences)
      : steps_size(schedule.size() * SavedRows(cell) * sizes.cell),
        h_size(return_sequences ? 0 : sizes.batch * sizes.time * sizes.cell) {}

  int64_t size() const { return steps_size + h_size; }
};

template <class T>
struct Call : Arguments<T> {
  using typename Arguments<T>::Compute;
  using Arguments<T>::In;
  using Arguments<T>::sizes;

  const Form& form;
  Schedule schedule;

  Call(const Form& f, const Signature& s) : Arguments<T>(s), form(f) {}

  Status Begin(const KernelContext& context, const Attributes& attributes) {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Fetch(context));
    schedule = Schedule::BatchMajor(sizes.batch, sizes.time,
                                    this->template Data<bool>("mask"),
                                    attributes.go_backwards);
    return Status();
  }

  ReserveLayout Reserve(bool return_sequences) const {
    return ReserveLayout(schedule, sizes, form.cell, return_sequences);
  }

  template <class Args>
  void SetInputs(const Attributes& attributes, Args* args) {
    const int64_t cell = sizes.cell;
    const int gates = GateCount(form.cell);
    args->config.cell = form.cell;
    args->config.input_size = sizes.input;
    args->config.cell_size = cell;
    args->config.hidden_size = cell;
    args->config.gate_order = form.order;
    args->config.cell_clip = attributes.cell_clip;
    args->config.bfloat16 = std::is_same_v<T, BFloat16>;
    args->schedule = &schedule;
    args->x = In("x");
    args->x_stride = sizes.input;
    args->h0 = In("initial_h");
    args->c0 = In("initial_c");
    args->h_stride = cell;
    args->weights.input = this->Matrices("kernel", gates, cell);
    args->weights.recurrent = this->Matrices("recurrent_kernel", gates, cell);
    args->weights.input_bias = In("bias");
    if (form.cell == CellKind::kGru && args->weights.input_bias) {
      args->weights.recurrent_bias = args->weights.input_bias + gates * cell;
    }
    if (const Compute* peephole = In("peephole")) {
      args->weights.peephole = Peepholes(peephole, cell);
    }
    args->dropout.input = In("input_dropout");
    args->dropout.recurrent = In("recurrent_dropout");
  }
};

// The packed weights of the last call, for as long as calls bring the very same
// tensors. These are kept too: while somebody else refers to a variable's
// buffer, TensorFlow does not write to it but gives the variable a new one.
class KeptWeights {
 public:
  // Takes the weights' tensors from `call`, whose arguments must be set.
  template <class T>
  std::shared_ptr<cpu::PackedWeights> For(Call<T>* call) {
    if constexpr (std::is_same_v<T, Half>) return nullptr;  // a copy anyway
    const std::lock_guard<std::mutex> lock(mutex_);
    bool same = packed_ != nullptr;
    for (size_t n = 0; n < kNames.size(); ++n) {
      const Tensor& now = *call->Find(kNames[n]);
      same = same && now.data<T>() == tensors_[n].data<T>() &&
             now.shape().dims() == tensors_[n].shape().dims();
    }
    if (same) return packed_;
    for (size_t n = 0; n < kNames.size(); ++n) {
      tensors_[n] = call->Take(kNames[n]);
    }
    packed_ = std::make_shared<cpu::PackedWeights>();
    return packed_;
  }

 private:
  static constexpr std::array<const char*, 2> kNames = {"kernel",
                                                        "recurrent_kernel"};

  std::mutex mutex_;
  std::array<Tensor, kNames.size()> tensors_;
  std::shared_ptr<cpu::PackedWeights> packed_;
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

template <class T, const Form& kForm>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kForm.cell));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(kForm, kForm.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    const Sizes& sizes = call.sizes;
    const bool sequences = attributes_.return_sequences;
    const ReserveLayout layout = call.Reserve(sequences);
    constexpr TF_DataType kType = tf::kDataType<T>;
    const Shape state({sizes.batch, sizes.cell});
    Tensor output, final_h, final_c, reserve;
    int next = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        next++, kType,
        Shape({sizes.batch, sequences ? sizes.time : 1, sizes.cell}), &output));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(next++, kType, state, &final_h));
    if (kForm.cell == CellKind::kLstm) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          context.AllocateOutput(next++, kType, state, &final_c));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        next++, kType, Shape({training_ ? layout.size() : 0}), &reserve));

    const int64_t rows = sizes.batch * sizes.time;
    const AlignedBuffer h_rows(
        sequences || training_ ? 0 : rows * sizes.cell * sizeof(T));
    T* h = sequences   ? output.data<T>()
           : training_ ? reserve.data<T>() + layout.steps_size
                       : static_cast<T*>(h_rows.data());
    RnnForward<typename Call<T>::Compute> args;
    call.SetInputs(attributes_, &args);
    args.h = call.staging.Out(h, rows * sizes.cell);
    if (kForm.cell == CellKind::kLstm) {
      args.final_c =
          call.staging.Out(final_c.data<T>(), sizes.batch * sizes.cell);
    }
    if (training_) {
      args.steps =
          PackedSteps(call.staging.Out(reserve.data<T>(), layout.steps_size),
                      kForm.cell, sizes.cell);
    }
    const std::shared_ptr<cpu::PackedWeights> packed =
        training_ ? nullptr : kept_weights_.For(&call);
    cpu::Forward(args, cpu::ThreadCount(ConfiguredThreads(context)),
                 packed.get());
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
      CopyRow(last < 0 ? call.Data("initial_h") + b * cell
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
  KeptWeights kept_weights_;
};

template <class T, const Form& kForm>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kForm.cell);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(kForm, kForm.gradient());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckSaved(call));
    std::vector<Tensor> outputs;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Outputs(
        call.signature, call.inputs, call.sizes, tf::kDataType<T>, &outputs));
    RnnBackward<C> args;
    call.SetInputs(attributes_, &args);
    SetSaved(&call, &args);
    SetStates(&call, outputs, &args);
    const auto out = [&](size_t n) {
      return call.staging.Out(outputs[n].template data<T>(), outputs[n].size());
    };
    args.dx = out(0);
    if (call.schedule.size() < call.sizes.batch * call.sizes.time) {
      std::fill(args.dx, args.dx + outputs[0].size(), C(0));
    }
    const int gates = GateCount(kForm.cell);
    size_t next = kForm.cell == CellKind::kLstm ? 3 : 2;  // after the states'
    args.gradients.input = ByInput(out(next++), gates, call.sizes.cell);
    args.gradients.recurrent = ByInput(out(next++), gates, call.sizes.cell);
    if (args.weights.input_bias) args.gradients.input_bias = out(next);
    if (args.weights.recurrent_bias) {
      args.gradients.recurrent_bias =
          args.gradients.input_bias + gates * call.sizes.cell;
    }
    if (args.weights.has_peephole()) {
      args.gradients.peephole = Peepholes(out(++next), call.sizes.cell);
    }
    cpu::Backward(args, cpu::ThreadCount(ConfiguredThreads(context)));
    call.staging.Finish();
    return Status();
  }

 private:
  using C = typename Call<T>::Compute;

  // The sizes that the signature cannot tell.
  Status CheckSaved(const Call<T>& call) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckOutputs(attributes_, call));
    return CheckReserve(call,
                        call.Reserve(attributes_.return_sequences).size());
  }

  void SetSaved(Call<T>* call, RnnBackward<C>* args) const {
    const ReserveLayout layout = call->Reserve(attributes_.return_sequences);
    const C* reserve = call->In("reserve");
    args->steps = PackedSteps(reserve, kForm.cell, call->sizes.cell);
    args->h = attributes_.return_sequences ? call->In("output")
                                           : reserve + layout.steps_size;
    args->h_bar = StepGradients(call);
  }

  // The gradient of each step's h, by output row: that of a masked step's
  // output belongs to the step it repeats. Null where the output is the last
  // step's alone; its gradient then goes to the final state's.
  const C* StepGradients(Call<T>* call) const {
    if (!attributes_.return_sequences) return nullptr;
    const C* output_grad = call->In("output_grad");
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
                 RnnBackward<C>* args) const {
    const int64_t cell = call->sizes.cell;
    const int64_t size = call->sizes.batch * cell;
    const auto start = [&](const char* name, const Tensor& output) {
      const C* final_grad = call->In(name);
      C* grad = call->staging.Out(output.data<T>(), size);
      std::copy(final_grad, final_grad + size, grad);
      return grad;
    };
    args->dh = start("final_h_grad", outputs[1]);
    if (kForm.cell == CellKind::kLstm) {
      args->dc = start("final_c_grad", outputs[2]);
    }
    if (attributes_.return_sequences) return;
    const C* last_grad = call->In("output_grad");
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

template <class T, const Form& kForm>
void RegisterForm() {
  tf::RegisterKernel<ForwardKernel<T, kForm>>(kForm.forward().op, "CPU",
                                              tf::kDataType<T>);
  tf::RegisterKernel<GradKernel<T, kForm>>(kForm.gradient().op, "CPU",
                                           tf::kDataType<T>);
}

template <class T>
bool RegisterAll() {
  RegisterForm<T, kLstm>();
  RegisterForm<T, kGru>();
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
