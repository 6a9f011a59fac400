#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/layer.h"
#include "backends/cpu/masked_steps.h"
#include "dialects/common/call_cpu.h"
#include "dialects/keras/problem.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::keras {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

template <class T>
using Compute = typename CpuCall<T>::Compute;

// Fills a layer direction from the inputs. Returns its valid steps.
template <class T>
PackedSequence SetCpuLayer(const OpVariant& variant,
                           const Attributes& attributes, CpuCall<T>* call,
                           LayerDirection<Compute<T>>* layer) {
  SetLayer(variant, attributes, call->sizes, call, layer);
  layer->config.bfloat16 = std::is_same_v<T, BFloat16>;
  return PackedSequence(layer->sequence);
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckProjection(call.sizes, call.shape_of()));
    LayerForward<C> layer;
    const PackedSequence packed =
        SetCpuLayer(kVariant, attributes_, &call, &layer);
    const Sizes& sizes = call.sizes;
    const ReserveLayout reserve(packed.size(), sizes, kVariant.cell,
                                attributes_.return_sequences);
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, reserve.size(), &call));
    const int64_t h_size = sizes.batch * sizes.time * HiddenSize(sizes);
    const bool has_h = attributes_.return_sequences || training_;
    const AlignedBuffer unsaved_h(has_h ? 0 : h_size * sizeof(T));
    T* h = attributes_.return_sequences ? call.OutData(kOutput)
           : training_ ? call.OutData(kReserve) + reserve.h_offset()
                       : static_cast<T*>(unsaved_h.data());
    SetOutputs(reserve, h, h_size, &call, &layer);
    // Half weights are converted to float in every call. In training weights
    // change in every step.
    const bool keeps = !training_ && !std::is_same_v<T, Half>;
    cpu::ComputeForward(layer, packed,
                        cpu::ThreadCount(ConfiguredThreads(context)),
                        keeps ? &kept_weights_ : nullptr);
    call.Finish();
    if (!attributes_.return_sequences) {
      CopyLastStep(sizes, h, call.OutData(kOutput));
    }
    return Status();
  }

 private:
  using C = keras::Compute<T>;
  static constexpr size_t kOutput = 0, kFinalH = 1, kFinalC = 2,
                          kReserve = kVariant.is_lstm() ? 3 : 2;

  Status Allocate(const KernelContext& context, int64_t reserve_size,
                  CpuCall<T>* call) const {
    for (const Shape& shape : ForwardShapes(kVariant, attributes_, call->sizes,
                                            training_ ? reserve_size : 0)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    return Status();
  }

  void SetOutputs(const ReserveLayout& reserve, T* h, int64_t h_size,
                  CpuCall<T>* call, LayerForward<C>* layer) const {
    const int64_t cell = call->sizes.cell, hidden = HiddenSize(call->sizes);
    layer->h = call->Out(h, h_size);
    layer->h_stride = hidden;
    layer->fill = attributes_.fill();
    layer->final_h = {call->Out(kFinalH), hidden};
    if (kVariant.is_lstm()) layer->final_c = {call->Out(kFinalC), cell};
    if (!training_) return;
    layer->saved = ActivationsByPackedRow(
        call->Out(call->OutData(kReserve), reserve.activations_size),
        kVariant.cell, cell);
  }

  // Copies the output of the last step; zero where there are no steps.
  static void CopyLastStep(const Sizes& sizes, const T* h, T* output) {
    const int64_t hidden = HiddenSize(sizes), time = sizes.time;
    for (int64_t b = 0; b < sizes.batch; ++b) {
      T* row = output + b * hidden;
      if (time == 0) {
        std::fill(row, row + hidden, T{});
      } else {
        const T* last = h + (b * time + time - 1) * hidden;
        std::copy(last, last + hidden, row);
      }
    }
  }

  Attributes attributes_;
  bool training_ = true;
  cpu::KeptWeights kept_weights_;
};

template <class T, const OpVariant& kVariant>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return construction.GetAttr("needs_x_grad", &needs_x_grad_);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.gradient());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckProjection(call.sizes, call.shape_of()));
    LayerBackward<C> layer;
    const PackedSequence packed =
        SetCpuLayer(kVariant, attributes_, &call, &layer);
    const ReserveLayout reserve(packed.size(), call.sizes, kVariant.cell,
                                attributes_.return_sequences);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckOutputs(attributes_, call.sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckReserve(call.shape_of(), reserve.size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    SetSaved(reserve, &call, &layer);
    SetOutputGrads(packed, &call, &layer);
    SetInputGrads(
        kVariant, call.sizes, [&](size_t n) { return call.Out(n); }, &layer);
    if (!needs_x_grad_ || packed.size() < layer.sequence.rows()) {
      std::fill_n(layer.x_grad, call.output_size(0), C(0));
    }
    if (!needs_x_grad_) layer.x_grad = nullptr;
    cpu::ComputeBackward(layer, packed,
                         cpu::ThreadCount(ConfiguredThreads(context)));
    call.Finish();
    return Status();
  }

 private:
  using C = keras::Compute<T>;

  void SetSaved(const ReserveLayout& reserve, CpuCall<T>* call,
                LayerBackward<C>* layer) const {
    const C* saved = call->In("reserve");
    layer->saved =
        ActivationsByPackedRow(saved, kVariant.cell, call->sizes.cell);
    layer->h = attributes_.return_sequences ? call->In("output")
                                            : saved + reserve.h_offset();
    layer->h_stride = HiddenSize(call->sizes);
  }

  void SetOutputGrads(const PackedSequence& packed, CpuCall<T>* call,
                      LayerBackward<C>* layer) const {
    const int64_t cell = call->sizes.cell, hidden = HiddenSize(call->sizes);
    const C* final_h_grad = call->In("final_h_grad");
    if (attributes_.return_sequences) {
      layer->h_grad = StepGrads(packed, *layer, call);
      layer->h_grad_stride = hidden;
    } else {
      final_h_grad = AddLastStepGrad(packed, final_h_grad, call);
    }
    layer->final_h_grad = {final_h_grad, hidden};
    layer->final_c_grad = {call->In("final_c_grad"), cell};
  }

  // Returns the gradient with respect to h of each step, by output row. A
  // masked step repeats the output of an earlier step, so its gradient is added
  // to the gradient of that step.
  const C* StepGrads(const PackedSequence& packed,
                     const LayerDirection<C>& layer, CpuCall<T>* call) const {
    const C* output_grad = call->In("output_grad");
    const int64_t width = HiddenSize(call->sizes);
    const int64_t rows = layer.sequence.rows();
    if (packed.size() == rows || attributes_.zero_output_for_mask) {
      return output_grad;
    }
    C* sums = call->Scratch(rows * width);
    std::copy_n(output_grad, rows * width, sums);
    cpu::ForEachStep(
        layer.sequence, packed, [&](int64_t row, int64_t latest, int64_t) {
          if (latest < 0 || latest == row) return;
          for (int64_t u = 0; u < width; ++u) {
            sums[latest * width + u] += output_grad[row * width + u];
          }
        });
    return sums;
  }

  // Returns the gradient with respect to the final state plus the gradient with
  // respect to the output of the last step, which is that of the last valid
  // step unless masked steps have zero outputs.
  const C* AddLastStepGrad(const PackedSequence& packed, const C* final_h_grad,
                           CpuCall<T>* call) const {
    const int64_t width = HiddenSize(call->sizes), time = call->sizes.time;
    const int64_t size = call->sizes.batch * width;
    const C* last_grad = call->In("output_grad");
    C* sums = call->Scratch(size);
    std::copy_n(final_h_grad, size, sums);
    for (int64_t b = 0; b < packed.batch; ++b) {
      const int64_t last = packed.Last(b);
      if (last < 0) continue;
      const bool is_valid = packed.At(last).output == b * time + time - 1;
      if (!is_valid && attributes_.zero_output_for_mask) continue;
      for (int64_t u = b * width; u < (b + 1) * width; ++u) {
        sums[u] += last_grad[u];
      }
    }
    return sums;
  }

  Attributes attributes_;
  bool needs_x_grad_ = true;
};

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  tf::RegisterKernel<ForwardKernel<T, kVariant>>(kVariant.forward().op, "CPU",
                                                 tf::kDataType<T>);
  tf::RegisterKernel<GradKernel<T, kVariant>>(kVariant.gradient().op, "CPU",
                                              tf::kDataType<T>);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, kLstm>();
  RegisterVariant<T, kGru>();
  RegisterVariant<T, kResetBeforeGru>();
  RegisterVariant<T, kLayerNormLstm>();
  RegisterVariant<T, kLayerNormGru>();
  return true;
}

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&KerasLSTM>(),
    tf::DefineOp<&KerasLSTMGrad>(),
    tf::DefineOp<&KerasGRU>(),
    tf::DefineOp<&KerasGRUGrad>(),
    tf::DefineOp<&KerasResetBeforeGRU>(),
    tf::DefineOp<&KerasResetBeforeGRUGrad>(),
    tf::DefineOp<&KerasLayerNormLSTM>(),
    tf::DefineOp<&KerasLayerNormLSTMGrad>(),
    tf::DefineOp<&KerasLayerNormGRU>(),
    tf::DefineOp<&KerasLayerNormGRUGrad>(),
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
