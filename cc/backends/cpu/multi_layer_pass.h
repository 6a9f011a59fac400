// MultiLayerPass: the CPU backend's entry points for a multi-layer RNN. The
// layers run one after the other; the directions of a layer run together.
//
// Between layers only valid steps are stored: row v of an inner output [V, D*P]
// is the v-th packed row of the forward direction. The first input and the last
// output have the shapes of MultiLayerForward, padding included.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MULTI_LAYER_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MULTI_LAYER_PASS_H_

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/layer.h"
#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/staging.h"
#include "core/dropout.h"
#include "core/multi_layer_rnn.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cpu {

// The passes of one call. T is float or double. Throws std::bad_alloc.
template <class T>
class MultiLayerPass {
 public:
  // A null `mask` means no dropout. `bfloat16` is as in RnnConfig. `rnn`,
  // `reserve` and `mask` must outlive this object. `reserve` gives the layout
  // of the reserve in MultiLayerForward and MultiLayerBackward, which points to
  // the body.
  MultiLayerPass(const MultiLayerRnn& rnn, const Reserve& reserve,
                 const DropoutMask* mask, bool bfloat16, int threads)
      : rnn_(rnn),
        model_(rnn.model),
        reserve_(reserve),
        mask_(mask),
        bfloat16_(bfloat16),
        threads_(threads) {
    for (int64_t d = 0; d < model_.directions; ++d) {
      packed_.emplace_back(DirectionSequence(rnn, d, rnn.lengths.data()));
    }
    if (model_.layers == 1 || packed_[0].is_full()) return;
    packed_row_.resize(rnn.rows());
    for (int64_t v = 0; v < rnn.valid_steps; ++v) {
      packed_row_[packed_[0].At(v).input] = v;
    }
  }

  // Computes the forward pass. Output rows of padding become zero.
  void Forward(const MultiLayerForward<T>& t) {
    ClearPadding(t.output, model_.output_size());
    const T* x = t.input;
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      T* h = IsLast(layer) ? t.output
             : t.reserve   ? t.reserve + reserve_.LayerOutput(layer)
                           : Scratch(model_.output_size());
      ForwardLayer(t, layer, x, h);
      if constexpr (std::is_same_v<T, float>) {
        if (t.bfloat16_reserve && !IsLast(layer)) {
          Narrow(h, t.bfloat16_reserve + reserve_.LayerOutput(layer),
                 rnn_.valid_steps * model_.output_size());
        }
      }
      x = ApplyDropout(layer, h);
    }
  }

  // Computes the backward pass. Rows of input_backprop in the padding become
  // zero.
  void Backward(const MultiLayerBackward<T>& t) {
    ClearPadding(t.input_backprop, model_.input_size);
    const T* h_grad = t.output_backprop;
    for (int64_t layer = model_.layers - 1; layer >= 0; --layer) {
      T* x_grad = layer == 0 ? t.input_backprop : Scratch(model_.output_size());
      const T* x = layer == 0
                       ? t.input
                       : ApplyDropout(layer - 1, InnerOutput(t, layer - 1));
      BackwardLayer(t, layer, x, h_grad, x_grad);
      h_grad = layer == 0 ? nullptr : ApplyDropout(layer - 1, x_grad);
    }
  }

 private:
  bool IsLast(int64_t layer) const { return layer == model_.layers - 1; }

  // Uninitialised memory [V, width].
  T* Scratch(int64_t width) {
    buffers_.push_back(
        std::make_unique<AlignedBuffer>(rnn_.valid_steps * width * sizeof(T)));
    return static_cast<T*>(buffers_.back()->data());
  }
  const T* InnerOutput(const MultiLayerBackward<T>& t, int64_t layer) {
    if constexpr (std::is_same_v<T, float>) {
      if (t.bfloat16_reserve) {
        T* h = Scratch(model_.output_size());
        Widen(t.bfloat16_reserve + reserve_.LayerOutput(layer), h,
              rnn_.valid_steps * model_.output_size());
        return h;
      }
    }
    return t.reserve + reserve_.LayerOutput(layer);
  }

  void ClearPadding(T* rows, int64_t width) const {
    if (rnn_.has_padding()) std::fill_n(rows, rnn_.rows() * width, T(0));
  }

  // The output [V, D*P] of an inner layer as the next layer reads it, or the
  // gradient with respect to it.
  const T* ApplyDropout(int64_t layer, const T* rows) {
    if (mask_ == nullptr || IsLast(layer)) return rows;
    const int64_t width = model_.output_size();
    T* dropped = Scratch(width);
    for (int64_t v = 0; v < rnn_.valid_steps; ++v) {
      mask_->Apply(layer, TimeMajorRow(v), rows + v * width,
                   dropped + v * width);
    }
    return dropped;
  }

  int64_t TimeMajorRow(int64_t v) const {
    const int64_t row = packed_[0].At(v).input;
    if (rnn_.time_major) return row;
    return row % rnn_.time * rnn_.batch + row / rnn_.time;
  }

  // The valid steps of each direction, with the rows of a layer's input and
  // output.
  PackedSequences LayerSteps(int64_t layer) const {
    if (model_.layers == 1) return packed_;
    PackedSequences all;
    for (const PackedSequence& packed : packed_) {
      all.push_back(
          packed.WithoutPadding(packed_row_, layer > 0, !IsLast(layer)));
    }
    return all;
  }

  // The rows of a state that belong to a pseudo-layer. Null stays null.
  template <class E>
  States<E> State(E* states, int64_t pseudo_layer, int64_t width) const {
    if (!states) return {};
    return {states + rnn_.StateRow(pseudo_layer, 0) * width,
            (rnn_.StateRow(pseudo_layer, 1) - rnn_.StateRow(pseudo_layer, 0)) *
                width};
  }

  // Sets the arguments that both passes share.
  template <class Layer, class Tensors>
  void SetLayer(const Tensors& t, int64_t layer, int64_t direction, const T* x,
                Layer* args) const {
    const int64_t p = model_.PseudoLayer(layer, direction);
    args->config = LayerConfig(model_, layer);
    args->config.bfloat16 = bfloat16_;
    args->sequence = DirectionSequence(rnn_, direction, rnn_.lengths.data());
    args->weights = LayerWeights(rnn_, layer, direction, t.params);
    args->x = x;
    args->x_stride = args->config.input_size;
    args->h0 = State(t.input_h, p, model_.hidden_size);
    args->c0 = State(t.input_c, p, model_.cell_size);
    args->h_stride = model_.output_size();
  }

  // Sets the saved activations of a pseudo-layer, if there is a reserve.
  template <class Tensors, class E>
  void SetSaved(const Tensors& t, int64_t p, SavedActivations<E>* saved) const {
    const auto set = [&](auto* reserve) {
      *saved = ActivationsByPackedRow<E>(
          reserve ? reserve + reserve_.Activations(p) : nullptr, model_.cell,
          model_.cell_size);
    };
    t.bfloat16_reserve ? set(t.bfloat16_reserve) : set(t.reserve);
  }

  // x [V, I] and h [V, D*P], or with padding.
  void ForwardLayer(const MultiLayerForward<T>& t, int64_t layer, const T* x,
                    T* h) const {
    std::vector<LayerForward<T>> directions(model_.directions);
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = model_.PseudoLayer(layer, d);
      LayerForward<T>& args = directions[d];
      SetLayer(t, layer, d, x, &args);
      args.h = h + d * model_.hidden_size;
      SetSaved(t, p, &args.saved);
      args.final_h = State(t.output_h, p, model_.hidden_size);
      args.final_c = State(t.output_c, p, model_.cell_size);
    }
    ComputeForward(directions.data(), LayerSteps(layer).data(),
                   directions.size(), threads_);
  }

  // x and x_grad [V, I], h_grad [V, D*P], or with padding.
  void BackwardLayer(const MultiLayerBackward<T>& t, int64_t layer, const T* x,
                     const T* h_grad, T* x_grad) {
    const T* h = IsLast(layer) ? t.output : InnerOutput(t, layer);
    const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
    std::vector<LayerBackward<T>> directions(model_.directions);
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = model_.PseudoLayer(layer, d);
      LayerBackward<T>& args = directions[d];
      SetLayer(t, layer, d, x, &args);
      args.h = h + d * hidden;
      SetSaved(t, p, &args.saved);
      args.h_grad = h_grad + d * hidden;
      args.h_grad_stride = args.h_stride;
      args.final_h_grad = State(t.output_h_backprop, p, hidden);
      args.final_c_grad = State(t.output_c_backprop, p, cell);
      args.h0_grad = State(t.input_h_backprop, p, hidden);
      args.c0_grad = State(t.input_c_backprop, p, cell);
      args.weights_grad = LayerWeights(rnn_, layer, d, t.params_backprop);
      args.x_grad = x_grad;
      args.adds_to_x_grad = d > 0;
    }
    ComputeBackward(directions.data(), LayerSteps(layer).data(),
                    directions.size(), threads_);
  }

  const MultiLayerRnn& rnn_;
  const RnnModel& model_;
  const Reserve& reserve_;
  const DropoutMask* mask_;
  const bool bfloat16_;
  const int threads_;
  PackedSequences packed_;           // of each direction, with padding
  std::vector<int64_t> packed_row_;  // of each row with padding; empty where
                                     // there is one layer or all steps are
                                     // valid
  std::vector<std::unique_ptr<AlignedBuffer>> buffers_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MULTI_LAYER_PASS_H_
