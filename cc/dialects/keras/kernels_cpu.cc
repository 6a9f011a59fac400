#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "backends/cpu/layer.h"
#include "backends/cpu/masked_steps.h"
#include "backends/cpu/thread_count.h"
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

// Fills the layer directions from the inputs. Returns their valid steps, the
// same ones in another order.
template <class T, class Layer>
cpu::PackedSequences SetCpuLayers(const OpVariant& variant,
                                  const Attributes& attributes,
                                  CpuCall<T>* call,
                                  std::vector<Layer>* layers) {
  cpu::PackedSequences packed;
  const Compute<T>* x = call->In("x");
  for (Layer& layer : *layers) {
    const auto direction = static_cast<int>(packed.size());
    const Compute<T>* own_x =
        direction == 0 ? x : call->In(NameIn(direction, "x").c_str());
    SetLayer(variant, attributes, call->sizes, direction, own_x ? own_x : x,
             call, &layer);
    layer.config.bfloat16 = std::is_same_v<T, BFloat16>;
    packed.emplace_back(layer.sequence);
  }
  return packed;
}

// Columns of a row of all directions. Null stays null.
template <class T>
T* Columns(T* rows, int64_t first) {
  return rows ? rows + first : nullptr;
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return construction.GetAttr("training", &training_);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.forward(),
                    cpu::ThreadCount(ConfiguredThreads(context)));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const Sizes& sizes = call.sizes;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckProjection(kVariant, attributes_, sizes, call.shape_of()));
    std::vector<LayerForward<C>> layers(kVariant.directions);
    const cpu::PackedSequences packed =
        SetCpuLayers(kVariant, attributes_, &call, &layers);
    const ReserveLayout reserve(packed[0].size(), sizes, kVariant.cell,
                                attributes_);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, kVariant.directions * reserve.size(), &call));
    const int64_t h_size = sizes.batch * sizes.time * HiddenSize(sizes);
    const bool has_h = attributes_.return_sequences || training_;
    const AlignedBuffer unsaved_h(
        has_h ? 0 : kVariant.directions * h_size * sizeof(T));
    HOfSteps h = {};
    for (int d = 0; d < kVariant.directions && !attributes_.return_sequences;
         ++d) {
      h[d] = training_ ? call.OutData(kReserve) + d * reserve.size() +
                             reserve.h_offset()
                       : static_cast<T*>(unsaved_h.data()) + d * h_size;
    }
    SetH(h, h_size, &call, &layers);
    SetOutputs(reserve, &call, &layers);
    // Half weights are converted to float in every call. In training weights
    // change in every step.
    const bool keeps = !training_ && !std::is_same_v<T, Half>;
    cpu::ComputeForward(layers.data(), packed.data(), layers.size(),
                        call.threads, keeps ? kept_weights_.data() : nullptr);
    call.Finish();
    const int64_t width = HiddenSize(sizes);
    for (int d = 0; d < kVariant.directions && !attributes_.return_sequences;
         ++d) {
      CopyLastSteps(h[d], sizes.batch, sizes.time, width,
                    call.OutData(kOutput) + d * width,
                    kVariant.directions * width);
    }
    return Status();
  }

 private:
  using C = keras::Compute<T>;
  // Without return_sequences: h of all steps of each direction, [B, T, P].
  using HOfSteps = std::array<T*, kVariant.directions>;

  static constexpr size_t kOutput = 0, kFinalH = 1,
                          kStates = kVariant.is_lstm() ? 2 : 1,
                          kReserve = kFinalH + kVariant.directions * kStates;

  Status Allocate(const KernelContext& context, int64_t reserve_size,
                  CpuCall<T>* call) const {
    for (const Shape& shape : ForwardShapes(kVariant, attributes_, call->sizes,
                                            training_ ? reserve_size : 0)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    return Status();
  }

  void SetH(const HOfSteps& h, int64_t h_size, CpuCall<T>* call,
            std::vector<LayerForward<C>>* layers) const {
    const int64_t hidden = HiddenSize(call->sizes);
    C* output = attributes_.return_sequences ? call->Out(kOutput) : nullptr;
    for (int d = 0; d < kVariant.directions; ++d) {
      LayerForward<C>& layer = (*layers)[d];
      layer.h = attributes_.return_sequences ? Columns(output, d * hidden)
                                             : call->Out(h[d], h_size);
      layer.h_stride =
          attributes_.return_sequences ? kVariant.directions * hidden : hidden;
      layer.fill = attributes_.fill();
    }
  }

  void SetOutputs(const ReserveLayout& reserve, CpuCall<T>* call,
                  std::vector<LayerForward<C>>* layers) const {
    const int64_t cell = call->sizes.cell, hidden = HiddenSize(call->sizes);
    size_t output = kFinalH;
    T* saved = call->OutData(kReserve);
    for (LayerForward<C>& layer : *layers) {
      layer.final_h = {call->Out(output++), hidden};
      if (kVariant.is_lstm()) layer.final_c = {call->Out(output++), cell};
      if (!training_) continue;
      layer.saved = ActivationsByPackedRow<C>(
          call->SavedOut(saved, reserve.activations_size), kVariant.cell, cell);
      if (layer.config.clips_h()) {
        layer.unclipped_h = call->Out(saved + reserve.unclipped_offset(),
                                      reserve.unclipped_size);
      }
      saved += reserve.size();
    }
  }

  Attributes attributes_;
  bool training_ = true;
  std::array<cpu::KeptWeights, kVariant.directions> kept_weights_;
};

template <class T, const OpVariant& kVariant>
class GradKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kVariant));
    return construction.GetAttr("needs_x_grad", &needs_x_grad_);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.gradient(),
                    cpu::ThreadCount(ConfiguredThreads(context)));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckProjection(kVariant, attributes_, call.sizes, call.shape_of()));
    std::vector<LayerBackward<C>> layers(kVariant.directions);
    const cpu::PackedSequences packed =
        SetCpuLayers(kVariant, attributes_, &call, &layers);
    const ReserveLayout reserve(packed[0].size(), call.sizes, kVariant.cell,
                                attributes_);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckOutputs(attributes_, call.sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.shape_of(), kVariant.directions * reserve.size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    SetSaved(reserve, &call, &layers);
    SetOutputGrads(packed, &call, &layers);
    for (int d = 0; d < kVariant.directions; ++d) {
      const size_t first = d * call.signature.outputs.size() / layers.size();
      SetInputGrads(
          kVariant, call.sizes, [&](size_t n) { return call.Out(first + n); },
          &layers[d]);
      SetXGrad(packed[d], call.output_size(first), layers[0].x_grad,
               &layers[d]);
    }
    cpu::ComputeBackward(layers.data(), packed.data(), layers.size(),
                         call.threads);
    call.Finish();
    return Status();
  }

 private:
  using C = keras::Compute<T>;

  void SetSaved(const ReserveLayout& reserve, CpuCall<T>* call,
                std::vector<LayerBackward<C>>* layers) const {
    const int64_t hidden = HiddenSize(call->sizes);
    const T* saved = call->Data("reserve");
    const C* output =
        attributes_.return_sequences ? call->In("output") : nullptr;
    for (LayerBackward<C>& layer : *layers) {
      layer.saved = ActivationsByPackedRow<const C>(
          call->staging().SavedIn(saved, reserve.activations_size),
          kVariant.cell, call->sizes.cell);
      layer.h =
          attributes_.return_sequences
              ? output
              : call->staging().In(saved + reserve.h_offset(), reserve.h_size);
      layer.h_stride =
          attributes_.return_sequences ? kVariant.directions * hidden : hidden;
      if (layer.config.clips_h()) {
        layer.unclipped_h = call->staging().In(
            saved + reserve.unclipped_offset(), reserve.unclipped_size);
      }
      saved += reserve.size();
      output = Columns(output, hidden);
    }
  }

  void SetOutputGrads(const cpu::PackedSequences& packed, CpuCall<T>* call,
                      std::vector<LayerBackward<C>>* layers) const {
    const int64_t cell = call->sizes.cell, hidden = HiddenSize(call->sizes);
    const C* output_grad = call->In("output_grad");
    for (int d = 0; d < kVariant.directions; ++d) {
      LayerBackward<C>& layer = (*layers)[d];
      const auto in = [&](const char* name) {
        return call->In(NameIn(d, name).c_str());
      };
      layer.final_h_grad = {in("final_h_grad"), hidden};
      layer.final_c_grad = {in("final_c_grad"), cell};
      if (attributes_.return_sequences) {
        SetStepGrads(packed[d], output_grad, call, &layer);
      } else {
        layer.final_h_grad.data = AddLastStepGrad(
            packed[d], output_grad, layer.final_h_grad.data, call);
      }
      output_grad = Columns(output_grad, hidden);
    }
  }

  // Sets the gradient with respect to h of each step, by output row. A masked
  // step repeats the output of an earlier step, so its gradient is added to the
  // gradient of that step. `output_grad` begins with the direction's columns.
  void SetStepGrads(const PackedSequence& packed, const C* output_grad,
                    CpuCall<T>* call, LayerBackward<C>* layer) const {
    const int64_t width = HiddenSize(call->sizes);
    const int64_t stride = kVariant.directions * width;
    const int64_t rows = layer->sequence.rows();
    layer->h_grad = output_grad;
    layer->h_grad_stride = stride;
    if (packed.size() == rows || attributes_.zero_output_for_mask) return;
    C* sums = call->Scratch(rows * width);
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(output_grad + row * stride, width, sums + row * width);
    }
    cpu::ForEachStep(
        layer->sequence, packed.steps, [&](int64_t row, int64_t latest) {
          if (latest < 0 || latest == row) return;
          for (int64_t u = 0; u < width; ++u) {
            sums[latest * width + u] += output_grad[row * stride + u];
          }
        });
    layer->h_grad = sums;
    layer->h_grad_stride = width;
  }

  // Returns the gradient with respect to the final state plus the gradient with
  // respect to the output of the last step, which is that of the last valid
  // step unless masked steps have zero outputs. `last_grad` begins with the
  // direction's columns.
  const C* AddLastStepGrad(const PackedSequence& packed, const C* last_grad,
                           const C* final_h_grad, CpuCall<T>* call) const {
    const int64_t width = HiddenSize(call->sizes), time = call->sizes.time;
    const int64_t stride = kVariant.directions * width;
    const int64_t size = call->sizes.batch * width;
    C* sums = call->Scratch(size);
    std::copy_n(final_h_grad, size, sums);
    for (int64_t b = 0; b < packed.batch; ++b) {
      const int64_t last = packed.Last(b);
      if (last < 0) continue;
      const bool is_valid = packed.At(last).output == b * time + time - 1;
      if (!is_valid && attributes_.zero_output_for_mask) continue;
      for (int64_t u = 0; u < width; ++u) {
        sums[b * width + u] += last_grad[b * stride + u];
      }
    }
    return sums;
  }

  // Sets where a direction writes its gradient with respect to x: output
  // layer->x_grad of `size` elements, or, if it has none because it reads the x
  // of the first direction, that one's gradient, to which it adds.
  void SetXGrad(const PackedSequence& packed, int64_t size, C* first,
                LayerBackward<C>* layer) const {
    if (layer->x_grad &&
        (!needs_x_grad_ || packed.size() < layer->sequence.rows())) {
      std::fill_n(layer->x_grad, size, C(0));
    }
    if (!layer->x_grad) {
      layer->x_grad = first;
      layer->adds_to_x_grad = true;
    }
    if (!needs_x_grad_) layer->x_grad = nullptr;
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

// The kernels of a layer's ops and of the ops of two layers.
template <class T, const OpVariant& kLayer>
void RegisterLayer() {
  RegisterVariant<T, kLayer>();
  RegisterVariant<T, kBidirectional<kLayer>>();
}

template <class T>
bool RegisterAll() {
  RegisterLayer<T, kLstm>();
  RegisterLayer<T, kGru>();
  RegisterLayer<T, kResetBeforeGru>();
  RegisterLayer<T, kLayerNormLstm>();
  RegisterLayer<T, kLayerNormGru>();
  RegisterLayer<T, kSimpleRnn>();
  return true;
}

template <const OpVariant& kLayer>
bool DefineLayer() {
  constexpr const OpVariant& kBoth = kBidirectional<kLayer>;
  return tf::DefineOp<kLayer.forward>() && tf::DefineOp<kLayer.gradient>() &&
         tf::DefineOp<kBoth.forward>() && tf::DefineOp<kBoth.gradient>();
}

[[maybe_unused]] const bool kDefined[] = {
    DefineLayer<kLstm>(),           DefineLayer<kGru>(),
    DefineLayer<kResetBeforeGru>(), DefineLayer<kLayerNormLstm>(),
    DefineLayer<kLayerNormGru>(),   DefineLayer<kSimpleRnn>()};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
