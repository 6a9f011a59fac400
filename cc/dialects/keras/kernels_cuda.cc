#include <type_traits>

#include "backends/cuda/cudnn/single_layer.h"
#include "backends/cuda/fused/layer.h"
#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/multi_layer/choose_layer_algorithm.h"
#include "dialects/common/call_cuda.h"
#include "dialects/keras/problem.h"

namespace tf_lstm_ops::keras {
namespace {

using cuda::Algorithm;
using cuda::CudnnSingleLayer;
using tf::KernelConstruction;
using tf::KernelContext;

// Whether cuDNN can compute a layer. bfloat16 layers are excluded, because
// cuDNN would compute them in float.
template <class T>
bool CudnnSupports(const LayerDirection<T>& layer) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return false;
  } else {
    return CudnnSingleLayer<T>::Supports(layer);
  }
}

// The reserve of the package's own kernels. It includes masked steps, because
// the mask lies in device memory.
template <class T>
ReserveLayout OwnReserve(const OpVariant& variant, const Attributes& attributes,
                         const CudaCall<T>& call) {
  return {call.sizes.batch * call.sizes.time, call.sizes, variant.cell,
          attributes.return_sequences};
}

// The size of a reserve of cuDNN. The size identifies the algorithm and differs
// from the size of the reserve of the package's own kernels.
template <class T>
int64_t CudnnReserveSize(const CudnnSingleLayer<T>& cudnn,
                         const ReserveLayout& own) {
  const int64_t size = cudnn.reserve_size();
  return size == own.size() ? size + cuda::kTagPeriod : size;
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    LayerForward<T> layer;
    SetLayer(kVariant, attributes_, call.sizes, &call, &layer);
    if constexpr (!std::is_same_v<T, BFloat16>) {
      if (CudnnSupports<T>(layer)) {
        Algorithm algorithm = Algorithm::kFusedSteps;
        TF_LSTM_OPS_RETURN_IF_ERROR(cuda::ChooseLayerAlgorithm<T>(
            call.device(), layer, training_, &algorithm));
        if (IsCudnn(algorithm)) {
          return ComputeByCudnn(context, algorithm, &call, &layer);
        }
        return ComputeByOwnKernels(context, &call, &layer, [&] {
          return cuda::ComputeForward(call.device(), layer, algorithm);
        });
      }
    }
    return ComputeByOwnKernels(context, &call, &layer, [&] {
      return cuda::ComputeForward(call.device(), layer);
    });
  }

 private:
  static constexpr size_t kOutput = 0, kFinalH = 1, kFinalC = 2,
                          kReserve = kVariant.is_lstm() ? 3 : 2;

  // compute() must compute `layer`, whose outputs have been set.
  template <class Compute>
  Status ComputeByOwnKernels(const KernelContext& context, CudaCall<T>* call,
                             LayerForward<T>* layer,
                             const Compute& compute) const {
    const ReserveLayout reserve = OwnReserve(kVariant, attributes_, *call);
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, reserve.size(), call));
    SetFinalStates(*call, layer);
    layer->saved =
        cuda::ActivationsByOutputRow(training_ ? call->Out(kReserve) : nullptr,
                                     kVariant.cell, call->sizes.cell);
    TF_LSTM_OPS_RETURN_IF_ERROR(SetH(*call, reserve, layer));
    layer->fill = attributes_.fill();
    TF_LSTM_OPS_RETURN_IF_ERROR(compute());
    return attributes_.return_sequences ? Status()
                                        : CopyLastStep(*call, layer->h);
  }

  Status ComputeByCudnn(const KernelContext& context, Algorithm algorithm,
                        CudaCall<T>* call, LayerForward<T>* layer) const {
    CudnnSingleLayer<T> cudnn(call->device(), *layer,
                              attributes_.return_sequences, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(training_));
    const ReserveLayout own = OwnReserve(kVariant, attributes_, *call);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, CudnnReserveSize(cudnn, own), call));
    SetFinalStates(*call, layer);
    return cudnn.ComputeForward(*layer, call->Out(kOutput),
                                training_ ? call->Out(kReserve) : nullptr);
  }

  Status Allocate(const KernelContext& context, int64_t reserve_size,
                  CudaCall<T>* call) const {
    for (const Shape& shape : ForwardShapes(kVariant, attributes_, call->sizes,
                                            training_ ? reserve_size : 0)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    return Status();
  }

  static void SetFinalStates(const CudaCall<T>& call, LayerForward<T>* layer) {
    const int64_t cell = call.sizes.cell;
    layer->final_h = {call.Out(kFinalH), cell};
    if (kVariant.is_lstm()) layer->final_c = {call.Out(kFinalC), cell};
  }

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

template <class T, const OpVariant& kVariant>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kVariant);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.gradient());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckOutputs(attributes_, call.sizes, call.shape_of()));
    LayerBackward<T> layer;
    SetLayer(kVariant, attributes_, call.sizes, &call, &layer);
    layer.final_h_grad = {call.In("final_h_grad"), call.sizes.cell};
    layer.final_c_grad = {call.In("final_c_grad"), call.sizes.cell};
    // The size of the reserve identifies the kernels that the forward op used.
    const ReserveLayout own = OwnReserve(kVariant, attributes_, call);
    const int64_t size = call.InputShape("reserve").dim(0);
    const bool may_be_cudnn = CudnnSupports<T>(layer);
    if constexpr (!std::is_same_v<T, BFloat16>) {
      Algorithm algorithm = Algorithm::kFusedSteps;
      if (may_be_cudnn && size != own.size() &&
          cuda::AlgorithmOfSize(size, &algorithm) && IsCudnn(algorithm)) {
        return ComputeByCudnn(context, algorithm, &call, &layer);
      }
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckReserve(call.shape_of(), own.size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateGrads(context, &call, &layer));
    SetSaved(call, own, &layer);
    TF_LSTM_OPS_RETURN_IF_ERROR(SetHGrad(call, &layer));
    if constexpr (!std::is_same_v<T, BFloat16>) {
      if (may_be_cudnn) {
        return cuda::ComputeBackwardAsChosen(call.device(), layer);
      }
    }
    return cuda::ComputeBackward(call.device(), layer);
  }

 private:
  Status ComputeByCudnn(const KernelContext& context, Algorithm algorithm,
                        CudaCall<T>* call, LayerBackward<T>* layer) const {
    CudnnSingleLayer<T> cudnn(call->device(), *layer,
                              attributes_.return_sequences, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(true));
    const ReserveLayout own = OwnReserve(kVariant, attributes_, *call);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call->shape_of(), CudnnReserveSize(cudnn, own)));
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateGrads(context, call, layer));
    return cudnn.ComputeBackward(*layer,
                                 {call->In("output"), call->In("output_grad")},
                                 call->In("reserve"));
  }

  static Status AllocateGrads(const KernelContext& context, CudaCall<T>* call,
                              LayerBackward<T>* layer) {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->AllocateAll(context));
    SetInputGrads(
        kVariant, call->sizes, [&](size_t n) { return call->Out(n); }, layer);
    return Status();
  }

  void SetSaved(const CudaCall<T>& call, const ReserveLayout& layout,
                LayerBackward<T>* layer) const {
    const int64_t cell = call.sizes.cell;
    const T* const reserve = call.In("reserve");
    layer->saved = cuda::ActivationsByOutputRow(reserve, kVariant.cell, cell);
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

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterCudaKernel<ForwardKernel<T, kVariant>>(kVariant.forward().op, kType);
  RegisterCudaKernel<GradKernel<T, kVariant>>(kVariant.gradient().op, kType);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, kLstm>();
  RegisterVariant<T, kGru>();
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
