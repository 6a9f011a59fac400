#include "backends/cuda/layer/layer.h"
#include "backends/cuda/layer/tensors.h"
#include "dialects/common/call_cuda.h"
#include "dialects/keras/problem.h"

namespace tf_lstm_ops::keras {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

// The reserve includes masked steps, because the mask lies in device memory.
template <class T>
ReserveLayout MakeReserve(const Attributes& attributes,
                          const CudaCall<T>& call) {
  return {call.sizes.batch * call.sizes.time, call.sizes, kLstm.cell,
          attributes};
}

// Reads the attributes. Error: Unimplemented for other activations than the
// default ones, which these kernels lack.
Status InitAttributes(const KernelConstruction& construction,
                      Attributes* attributes) {
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes->Init(construction, kLstm));
  if (attributes->has_default_activations()) return Status();
  return MakeStatus(Code::kUnimplemented,
                    "activation must be tanh and recurrent_activation sigmoid "
                    "on CUDA; place the op on the CPU");
}

// Error: Unimplemented for a projection, which these kernels lack.
Status CheckUnprojected(const Sizes& sizes) {
  if (HiddenSize(sizes) == sizes.cell) return Status();
  return MakeStatus(
      Code::kUnimplemented,
      "projection must be absent on CUDA; place the op on the CPU");
}

template <class T>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(InitAttributes(construction, &attributes_));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kLstm.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckProjection(kLstm, attributes_, call.sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckUnprojected(call.sizes));
    LayerForward<T> layer;
    SetLayer(kLstm, attributes_, call.sizes, 0, call.In("x"), &call, &layer);
    const ReserveLayout reserve = MakeReserve(attributes_, call);
    for (const Shape& shape : ForwardShapes(kLstm, attributes_, call.sizes,
                                            training_ ? reserve.size() : 0)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape));
    }
    const int64_t cell = call.sizes.cell;
    layer.final_h = {call.Out(kFinalH), cell};
    layer.final_c = {call.Out(kFinalC), cell};
    layer.saved = cuda::ActivationsByOutputRow(
        training_ ? call.Out(kReserve) : nullptr, kLstm.cell, cell);
    layer.fill = attributes_.fill();
    TF_LSTM_OPS_RETURN_IF_ERROR(SetH(call, reserve, &layer));
    TF_LSTM_OPS_RETURN_IF_ERROR(cuda::ComputeForward(call.device(), layer));
    return attributes_.return_sequences ? Status()
                                        : CopyLastStep(call, layer.h);
  }

 private:
  static constexpr size_t kOutput = 0, kFinalH = 1, kFinalC = 2, kReserve = 3;

  // Sets h of all steps: the output, a part of the reserve, or temporary
  // memory.
  Status SetH(const CudaCall<T>& call, const ReserveLayout& layout,
              LayerForward<T>* layer) const {
    layer->h_stride = call.sizes.cell;
    if (attributes_.return_sequences) {
      layer->h = call.Out(kOutput);
    } else if (training_) {
      T* const reserve = call.Out(kReserve);
      layer->h = reserve ? reserve + layout.h_offset() : nullptr;
    } else {
      return call.device().Allocate(layout.h_size, &layer->h);
    }
    return Status();
  }

  // Copies the output of the last step; zero where there are no steps.
  static Status CopyLastStep(const CudaCall<T>& call, const T* h) {
    const int64_t cell = call.sizes.cell, time = call.sizes.time;
    const T* last = time > 0 ? h + (time - 1) * cell : nullptr;
    return cuda::Copy(call.device(), cuda::CopyRows<T, T>{
                                         call.sizes.batch, cell, last,
                                         time * cell, call.Out(kOutput), cell});
  }

  Attributes attributes_;
  bool training_ = true;
};

template <class T>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return InitAttributes(construction, &attributes_);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kLstm.gradient());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckProjection(kLstm, attributes_, call.sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckUnprojected(call.sizes));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckOutputs(attributes_, call.sizes, call.shape_of()));
    const ReserveLayout reserve = MakeReserve(attributes_, call);
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckReserve(call.shape_of(), reserve.size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    LayerBackward<T> layer;
    SetLayer(kLstm, attributes_, call.sizes, 0, call.In("x"), &call, &layer);
    SetInputGrads(
        kLstm, call.sizes, [&](size_t n) { return call.Out(n); }, &layer);
    layer.final_h_grad = {call.In("final_h_grad"), call.sizes.cell};
    layer.final_c_grad = {call.In("final_c_grad"), call.sizes.cell};
    SetSaved(call, reserve, &layer);
    TF_LSTM_OPS_RETURN_IF_ERROR(SetHGrad(call, &layer));
    return cuda::ComputeBackward(call.device(), layer);
  }

 private:
  void SetSaved(const CudaCall<T>& call, const ReserveLayout& layout,
                LayerBackward<T>* layer) const {
    const int64_t cell = call.sizes.cell;
    const T* const reserve = call.In("reserve");
    layer->saved = cuda::ActivationsByOutputRow(reserve, kLstm.cell, cell);
    layer->h = attributes_.return_sequences ? call.In("output")
                                            : reserve + layout.h_offset();
    layer->h_stride = cell;
  }

  Status SetHGrad(const CudaCall<T>& call, LayerBackward<T>* layer) const {
    layer->h_grad = call.In("output_grad");
    layer->h_grad_stride = call.sizes.cell;
    const bool last_only = !attributes_.return_sequences;
    if (layer->sequence.mask == nullptr && !last_only) return Status();
    cuda::StepGrads<T> grads;
    grads.sequence = layer->sequence;
    grads.cell_size = call.sizes.cell;
    grads.last_only = last_only;
    grads.masked_is_zero = attributes_.zero_output_for_mask;
    grads.output_grad = layer->h_grad;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.device().Allocate(
        layer->sequence.rows() * call.sizes.cell, &grads.h_grad));
    layer->h_grad = grads.h_grad;
    return cuda::ComputeStepGrads(call.device(), grads);
  }

  Attributes attributes_;
};

template <class T>
bool Register() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterCudaKernel<ForwardKernel<T>>(kLstm.forward().op, kType);
  RegisterCudaKernel<GradKernel<T>>(kLstm.gradient().op, kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    Register<float>(), Register<double>(), Register<Half>(),
    Register<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
