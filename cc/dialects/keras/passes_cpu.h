// The passes behind tf_lstm_ops.keras on the CPU: what an op computes from its
// tensors, whoever owns these.
#ifndef TF_LSTM_OPS_DIALECTS_KERAS_PASSES_CPU_H_
#define TF_LSTM_OPS_DIALECTS_KERAS_PASSES_CPU_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "backends/cpu/layer.h"
#include "backends/cpu/masked_steps.h"
#include "dialects/common/call_cpu.h"
#include "dialects/keras/problem.h"

namespace tf_lstm_ops::keras {

template <class T>
using Compute = typename cpu::Staging<T>::Compute;

// The valid steps of each direction, the same ones in another order.
inline cpu::PackedSequences ValidSteps(const OpVariant& variant,
                                       const Attributes& attributes,
                                       const Sizes& sizes, const bool* mask) {
  cpu::PackedSequences packed;
  for (int d = 0; d < variant.directions; ++d) {
    packed.emplace_back(
        KerasSequence(attributes, d, sizes.batch, sizes.time, mask));
  }
  return packed;
}

// Fills the layer directions from the inputs.
template <class T, class Context, class Layer>
void SetCpuLayers(const OpVariant& variant, const Attributes& attributes,
                  CpuCall<T, Context>* call, std::vector<Layer>* layers) {
  int direction = 0;
  const Compute<T>* x = call->In("x");
  for (Layer& layer : *layers) {
    const Compute<T>* own_x =
        direction == 0 ? x : call->In(NameIn(direction, "x").c_str());
    SetLayer(variant, attributes, call->sizes, direction, own_x ? own_x : x,
             call, &layer);
    layer.config.bfloat16 = std::is_same_v<T, BFloat16>;
    ++direction;
  }
}

// Columns of a row of all directions. Null stays null.
template <class T>
T* Columns(T* rows, int64_t first) {
  return rows ? rows + first : nullptr;
}

// The forward op. Any number of threads may call Compute at once.
template <class T, const OpVariant& kVariant>
class ForwardPass {
 public:
  static constexpr const Signature& (*kSignature)() = kVariant.forward;

  Status Init(const AttributeReader& reader) {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(reader, kVariant));
    return reader.GetAttr("training", &training_);
  }

  // Sets the shapes of the outputs of a call. It reads the mask only. Context
  // is as of CpuCall.
  template <class Context>
  Status Infer(const Context& context, std::vector<Shape>* shapes) const {
    CpuCall<T, Context> call(kSignature(), 1);
    TF_LSTM_OPS_RETURN_IF_ERROR(Check(context, &call));
    *shapes = OutputShapes(ValidStepsOf(call), call.sizes);
    return Status();
  }

  // Computes a call on at most `threads` threads.
  template <class Context>
  Status Compute(const Context& context, int threads) {
    CpuCall<T, Context> call(kSignature(), threads);
    TF_LSTM_OPS_RETURN_IF_ERROR(Check(context, &call));
    const Sizes& sizes = call.sizes;
    const cpu::PackedSequences packed = ValidStepsOf(call);
    for (const Shape& shape : OutputShapes(packed, sizes)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape));
    }
    const ReserveLayout reserve(packed[0].size(), sizes, kVariant.cell,
                                attributes_);
    std::vector<LayerForward<C>> layers(kVariant.directions);
    SetCpuLayers(kVariant, attributes_, &call, &layers);
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
    const bool keeps =
        Context::kKeepsWeights && !training_ && !std::is_same_v<T, Half>;
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

  template <class Context>
  Status Check(const Context& context, CpuCall<T, Context>* call) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    return CheckProjection(kVariant, attributes_, call->sizes,
                           call->shape_of());
  }

  template <class Context>
  cpu::PackedSequences ValidStepsOf(const CpuCall<T, Context>& call) const {
    return ValidSteps(kVariant, attributes_, call.sizes, call.Mask("mask"));
  }

  std::vector<Shape> OutputShapes(const cpu::PackedSequences& packed,
                                  const Sizes& sizes) const {
    const ReserveLayout reserve(packed[0].size(), sizes, kVariant.cell,
                                attributes_);
    return ForwardShapes(kVariant, attributes_, sizes,
                         training_ ? kVariant.directions * reserve.size() : 0);
  }

  template <class Context>
  void SetH(const HOfSteps& h, int64_t h_size, CpuCall<T, Context>* call,
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

  template <class Context>
  void SetOutputs(const ReserveLayout& reserve, CpuCall<T, Context>* call,
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

// The gradient op, likewise.
template <class T, const OpVariant& kVariant>
class GradientPass {
 public:
  static constexpr const Signature& (*kSignature)() = kVariant.gradient;

  Status Init(const AttributeReader& reader) {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(reader, kVariant));
    return reader.GetAttr("needs_x_grad", &needs_x_grad_);
  }

  template <class Context>
  Status Compute(const Context& context, int threads) {
    CpuCall<T, Context> call(kSignature(), threads);
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckProjection(kVariant, attributes_, call.sizes, call.shape_of()));
    const cpu::PackedSequences packed =
        ValidSteps(kVariant, attributes_, call.sizes, call.Mask("mask"));
    const ReserveLayout reserve(packed[0].size(), call.sizes, kVariant.cell,
                                attributes_);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckOutputs(attributes_, call.sizes, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.shape_of(), kVariant.directions * reserve.size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    std::vector<LayerBackward<C>> layers(kVariant.directions);
    SetCpuLayers(kVariant, attributes_, &call, &layers);
    SetSaved(reserve, &call, &layers);
    SetOutputGrads(packed, &call, &layers);
    for (int d = 0; d < kVariant.directions; ++d) {
      const size_t first = d * call.signature.outputs.size() / layers.size();
      SetInputGrads(
          kVariant, call.sizes, [&](size_t n) { return call.Out(first + n); },
          &layers[d]);
      const bool reads_first_x = d > 0 && !call.Find(NameIn(d, "x").c_str());
      SetXGrad(packed[d], call.output_size(first),
               reads_first_x ? layers[0].x_grad : nullptr, &layers[d]);
    }
    cpu::ComputeBackward(layers.data(), packed.data(), layers.size(),
                         call.threads);
    call.Finish();
    return Status();
  }

 private:
  using C = keras::Compute<T>;

  template <class Context>
  void SetSaved(const ReserveLayout& reserve, CpuCall<T, Context>* call,
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

  template <class Context>
  void SetOutputGrads(const cpu::PackedSequences& packed,
                      CpuCall<T, Context>* call,
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
  template <class Context>
  void SetStepGrads(const PackedSequence& packed, const C* output_grad,
                    CpuCall<T, Context>* call, LayerBackward<C>* layer) const {
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
  template <class Context>
  const C* AddLastStepGrad(const PackedSequence& packed, const C* last_grad,
                           const C* final_h_grad,
                           CpuCall<T, Context>* call) const {
    const int64_t width = HiddenSize(call->sizes), time = call->sizes.time;
    const int64_t stride = kVariant.directions * width;
    const int64_t size = call->sizes.batch * width;
    C* sums = call->Scratch(size);
    if (final_h_grad) {
      std::copy_n(final_h_grad, size, sums);
    } else {
      std::fill_n(sums, size, C(0));
    }
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

}  // namespace tf_lstm_ops::keras

#endif  // TF_LSTM_OPS_DIALECTS_KERAS_PASSES_CPU_H_
