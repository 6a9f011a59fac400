// Kernels of the ops behind tf_lstm_ops.keras.
#include <array>
#include <string>
#include <type_traits>

#include "backends/cuda/cudnn_keras.h"
#include "dialects/common/call_cuda.h"
#include "backends/cuda/kernels/keras_arguments.h"
#include "backends/cuda/programs.h"
#include "backends/cuda/rnn.h"
#include "backends/cuda/tensors.h"
#include "dialects/keras/op_variants.h"

namespace tf_lstm_ops::cuda {
namespace {

using keras::OpVariant;
using tf::KernelConstruction;
using tf::KernelContext;

// The reserve of rnn.h: what a step keeps, [B,T,rows,H], and, where the output
// has the last step only, h of all steps, [B,T,H]. Masked steps have their
// place in it, since what the mask says is not known to the host.
struct Reserve {
  int64_t kept_size, h_size;

  Reserve(const Sizes& sizes, CellKind cell, bool return_sequences)
      : kept_size(SavedCount(cell) * sizes.batch * sizes.time * sizes.cell),
        h_size(return_sequences ? 0 : sizes.batch * sizes.time * sizes.cell) {}

  int64_t size() const { return kept_size + h_size; }
};

// By part, of rows i, f, o.
template <class T>
std::array<T*, kMaxPreActivations> Peepholes(T* rows, int64_t cell) {
  std::array<T*, kMaxPreActivations> peephole = {};
  if (!rows) return peephole;
  peephole[kGateI] = rows;
  peephole[kGateF] = rows + cell;
  peephole[kGateO] = rows + 2 * cell;
  return peephole;
}

template <class T, const OpVariant& kVariant>
class LayerKernel : public tf::Kernel {
 protected:
  static constexpr int kGates = GateCount(kVariant.cell);
  static constexpr bool kIsLstm = kVariant.cell == CellKind::kLstm;
  static constexpr bool kHasCudnn = !std::is_same_v<T, BFloat16>;

  // A gate's multipliers, [gates, B, width].
  static Multipliers<T> Dropout(const Call& call, const char* name,
                                int64_t width) {
    return {call.In<T>(name), call.sizes.batch * width, width, 1};
  }

  void SetLayer(const Call& call, Layer<T>* layer) const {
    const Sizes& sizes = call.sizes;
    const int64_t cell = sizes.cell;
    layer->config.cell = kVariant.cell;
    layer->config.input_size = sizes.input;
    layer->config.cell_size = cell;
    layer->config.hidden_size = cell;
    layer->config.gate_order = kVariant.order;
    layer->config.cell_clip = attributes_.cell_clip;
    layer->steps.batch = sizes.batch;
    layer->steps.time = layer->steps.steps = sizes.time;
    layer->steps.time_major = false;
    layer->steps.reversed = attributes_.go_backwards;
    layer->steps.outputs_in_order = true;
    layer->steps.mask = call.In<bool>("mask");
    layer->x = call.In<T>("x");
    layer->x_stride = sizes.input;
    layer->h0 = {call.In<T>("initial_h"), cell};
    layer->c0 = {call.In<T>("initial_c"), cell};
    layer->weights.input = ByInput(call.In<T>("kernel"), kGates, cell);
    layer->weights.recurrent =
        ByInput(call.In<T>("recurrent_kernel"), kGates, cell);
    layer->weights.input_bias = call.In<T>("bias");
    layer->weights.recurrent_bias = RecurrentBias(call.In<T>("bias"), cell);
    layer->weights.peephole = Peepholes(call.In<T>("peephole"), cell);
    layer->input_dropout = Dropout(call, "input_dropout", sizes.input);
    layer->recurrent_dropout = Dropout(call, "recurrent_dropout", cell);
  }

  // A GRU's two biases are rows of one tensor.
  template <class E>
  static E* RecurrentBias(E* bias, int64_t cell) {
    return kIsLstm || !bias ? nullptr : bias + kGates * cell;
  }

  Reserve ReserveOf(const Call& call) const {
    return Reserve(call.sizes, kVariant.cell, attributes_.return_sequences);
  }

  keras::Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
class ForwardKernel : public LayerKernel<T, kVariant> {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->attributes_.Init(construction, kVariant.cell));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    Call call(kVariant.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    RnnForward<T> args;
    this->SetLayer(call, &args);
    if constexpr (Base::kHasCudnn) {
      if (CudnnKeras<T>::Serves(args)) return ByCudnn(context, &call, &args);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        AllocateOutputs(context, this->ReserveOf(call).size(), &call));
    SetFinalStates(call, &args);
    const int64_t cell = call.sizes.cell;
    T* const reserve = call.template Out<T>(kReserve);
    args.kept = PackedActivations(training_ ? reserve : nullptr, kVariant.cell, cell);
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateH(call, reserve, &args.h));
    args.h_stride = cell;
    args.fill =
        this->attributes_.zero_output_for_mask ? Fill::kZero : Fill::kPrevious;
    TF_LSTM_OPS_RETURN_IF_ERROR(Forward(call.device(), args));
    return this->attributes_.return_sequences ? Status()
                                              : LastStep(call, args.h);
  }

 private:
  using Base = LayerKernel<T, kVariant>;
  static constexpr size_t kReserve = Base::kIsLstm ? 3 : 2;

  Status ByCudnn(const KernelContext& context, Call* call,
                 RnnForward<T>* args) const {
    CudnnKeras<T> cudnn(call->device(), *args);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn.BeginForward(training_, this->attributes_.return_sequences));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        AllocateOutputs(context, cudnn.reserve_size(), call));
    SetFinalStates(*call, args);
    return cudnn.Forward(*args, call->template Out<T>(0),
                         training_ ? call->template Out<T>(kReserve) : nullptr);
  }

  static void SetFinalStates(const Call& call, RnnForward<T>* args) {
    args->final_h = {call.template Out<T>(1), call.sizes.cell};
    if (Base::kIsLstm) {
      args->final_c = {call.template Out<T>(2), call.sizes.cell};
    }
  }

  Status AllocateOutputs(const KernelContext& context, int64_t reserve_size,
                         Call* call) const {
    const Sizes& sizes = call->sizes;
    const int64_t steps = this->attributes_.return_sequences ? sizes.time : 1;
    const Shape state({sizes.batch, sizes.cell});
    std::vector<Shape> shapes = {Shape({sizes.batch, steps, sizes.cell}),
                                 state};
    if (Base::kIsLstm) shapes.push_back(state);
    shapes.push_back(Shape({training_ ? reserve_size : 0}));
    for (const Shape& shape : shapes) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call->Allocate(context, tf::kDataType<T>, shape));
    }
    return Status();
  }

  // Where h of all steps goes: to the output, the reserve, or nowhere.
  Status AllocateH(const Call& call, T* reserve, T** h) const {
    const Reserve layout = this->ReserveOf(call);
    if (this->attributes_.return_sequences) {
      *h = call.template Out<T>(0);
    } else if (training_) {
      *h = reserve ? reserve + layout.kept_size : nullptr;
    } else {
      return call.device().Allocate(layout.h_size, h);
    }
    return Status();
  }

  // The last step's output; zero where there are no steps.
  static Status LastStep(const Call& call, const T* h) {
    const int64_t cell = call.sizes.cell, time = call.sizes.time;
    const T* last = time > 0 ? h + (time - 1) * cell : nullptr;
    return Copy(call.device(),
                CopyRows<T, T>{call.sizes.batch, cell, last, time * cell,
                               call.template Out<T>(0), cell});
  }

  bool training_ = true;
};

template <class T, const OpVariant& kVariant>
class GradKernel : public LayerKernel<T, kVariant> {
 public:
  Status Init(const KernelConstruction& construction) override {
    return this->attributes_.Init(construction, kVariant.cell);
  }

  Status Compute(const KernelContext& context) override {
    Call call(kVariant.gradient());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(keras::CheckOutputs(this->attributes_, call));
    RnnBackward<T> args;
    this->SetLayer(call, &args);
    args.final_h_grad = {call.In<T>("final_h_grad"), call.sizes.cell};
    args.final_c_grad = {call.In<T>("final_c_grad"), call.sizes.cell};
    if constexpr (Base::kHasCudnn) {
      if (CudnnKeras<T>::Serves(args)) return ByCudnn(context, &call, &args);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        keras::CheckReserve(call, this->ReserveOf(call).size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, tf::kDataType<T>));
    SetSaved(call, &args);
    TF_LSTM_OPS_RETURN_IF_ERROR(SetUpstream(call, &args));
    SetGradients(call, &args);
    return Backward(call.device(), args);
  }

 private:
  using Base = LayerKernel<T, kVariant>;

  Status ByCudnn(const KernelContext& context, Call* call,
                 RnnBackward<T>* args) const {
    CudnnKeras<T> cudnn(call->device(), *args);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn.BeginBackward(this->attributes_.return_sequences));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        keras::CheckReserve(*call, cudnn.reserve_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call->AllocateAll(context, tf::kDataType<T>));
    SetGradients(*call, args);
    return cudnn.Backward(*args, call->In<T>("output"),
                          call->In<T>("output_grad"), call->In<T>("reserve"));
  }

  void SetSaved(const Call& call, RnnBackward<T>* args) const {
    const int64_t cell = call.sizes.cell;
    const T* const reserve = call.In<T>("reserve");
    args->kept = PackedActivations(reserve, kVariant.cell, cell);
    args->h = this->attributes_.return_sequences
                  ? call.In<T>("output")
                  : reserve + this->ReserveOf(call).kept_size;
    args->h_stride = cell;
  }

  Status SetUpstream(const Call& call, RnnBackward<T>* args) const {
    const int64_t cell = call.sizes.cell;
    args->h_grad = call.In<T>("output_grad");
    args->h_grad_stride = cell;
    const bool last_only = !this->attributes_.return_sequences;
    if (args->steps.mask == nullptr && !last_only) return Status();
    StepGradients<T> a;
    a.steps = args->steps;
    a.cell = cell;
    a.last_only = last_only;
    a.masked_is_zero = this->attributes_.zero_output_for_mask;
    a.output_grad = args->h_grad;
    const Device& device = call.device();
    const int64_t rows = args->steps.rows(), states = a.steps.batch * cell;
    TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(rows * cell, &a.h_grad));
    args->h_grad = a.h_grad;
    if (states == 0) return Status();
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindKernel(device, {"kernels/keras.cu", {TypeMacro<T>()}},
                   "step_gradients", &function));
    return device.Launch(function, states, a);
  }

  void SetGradients(const Call& call, RnnBackward<T>* args) const {
    const int64_t cell = call.sizes.cell;
    const auto out = [&](size_t n) { return call.template Out<T>(n); };
    size_t next = 0;
    args->x_grad = out(next++);
    args->h0_grad = {out(next++), cell};
    if (Base::kIsLstm) args->c0_grad = {out(next++), cell};
    args->weights_grad.input = ByInput(out(next++), Base::kGates, cell);
    args->weights_grad.recurrent = ByInput(out(next++), Base::kGates, cell);
    T* const bias = out(next++);
    args->weights_grad.input_bias = bias;
    args->weights_grad.recurrent_bias = Base::RecurrentBias(bias, cell);
    if (Base::kIsLstm) args->weights_grad.peephole = Peepholes(out(next), cell);
  }
};

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  Register<ForwardKernel<T, kVariant>>(kVariant.forward().op, kType);
  Register<GradKernel<T, kVariant>>(kVariant.gradient().op, kType);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, keras::kLstm>();
  RegisterVariant<T, keras::kGru>();
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cuda
