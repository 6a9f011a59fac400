// FusedMultiLayer: a multi-layer RNN on the package's own kernels
// (fused/layer.h), layer by layer and direction by direction.
//
// The reserve is the header and one further part: MultiLayerReserveLayout with
// the T*B rows of the op's sequences, padding included, and the outputs of all
// layers but the last.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_

#include <cstdint>

#include "backends/cuda/fused/layer.h"
#include "backends/cuda/multi_layer/multi_layer.h"
#include "backends/cuda/multi_layer/reserve_parts.h"
#include "core/reserve_layout.h"

namespace tf_lstm_ops::cuda {

template <class T>
class FusedMultiLayer : public MultiLayerAlgorithm<T> {
 public:
  // Whether the kernels can compute this RNN. They cannot if it has a
  // projection and rows of length zero, or if its states are too large
  // (FitsFusedKernels).
  static bool Supports(const MultiLayerRnn& rnn);

  FusedMultiLayer(const MultiLayerRnn& rnn, const DropoutMask* mask,
                  Algorithm algorithm)
      : rnn_(rnn),
        model_(rnn.model),
        mask_(mask),
        algorithm_(algorithm),
        layout_(MakeLayout(rnn)),
        parts_(algorithm, sizeof(T)) {}

  Status Begin(const Device& device, bool is_training) override;
  int64_t reserve_size() const override { return parts_.size(); }
  Status ComputeForward(const MultiLayerForward<T>& t) override;
  Status ComputeBackward(const MultiLayerBackward<T>& t) override;

 private:
  static MultiLayerReserveLayout MakeLayout(const MultiLayerRnn& rnn);
  Status SetSequence();
  bool IsLast(int64_t layer) const { return layer == model_.layers - 1; }

  // The element at an offset of layout_.
  template <class E>
  E* At(E* reserve, int64_t offset) const {
    return reserve + body_ / static_cast<int64_t>(sizeof(T)) + offset;
  }
  template <class E>
  E* LayerOutput(E* reserve, int64_t layer) const {
    return At(reserve, layout_.LayerOutput(layer));
  }
  // Null where the model has no projection.
  template <class E>
  E* UnprojectedH(E* reserve, int64_t p) const {
    return model_.projected() ? At(reserve, layout_.UnprojectedH(p)) : nullptr;
  }
  // The part of a state that belongs to pseudo-layer p. Null stays null.
  template <class E>
  States<E> State(E* states, int64_t p, int64_t width) const {
    const int64_t first = rnn_.StateRow(p, 0);
    return {states ? states + first * width : nullptr,
            (rnn_.StateRow(p, 1) - first) * width};
  }

  // Sets [rows, width] to zero if the RNN has padding.
  Status ClearPadding(int64_t width, T* rows) const {
    return rnn_.has_padding() ? device_->Zero(rows, rnn_.rows() * width)
                              : Status();
  }
  Status AllocateRows(int64_t width, T** rows) const;
  Status ClearReserve(T* reserve) const;
  // Sets `to` to a layer's output, or its gradient, after dropout.
  Status ApplyDropout(int64_t layer, const T* reserve, const T* from,
                      const T** to) const;

  template <class Tensors>
  void SetLayer(const Tensors& t, int64_t layer, int64_t direction,
                LayerDirection<T>* args) const;
  Status ForwardLayer(const MultiLayerForward<T>& t, int64_t layer, const T* x,
                      T* h) const;
  // The tensors of a layer in a backward pass.
  struct LayerGrads {
    const T *x, *h_grad;
    T* x_grad;
  };
  Status BackwardLayer(const MultiLayerBackward<T>& t, int64_t layer,
                       const LayerGrads& grads) const;

  const MultiLayerRnn& rnn_;
  const RnnModel& model_;
  const DropoutMask* const mask_;
  const Algorithm algorithm_;
  const Device* device_ = nullptr;
  Sequence sequence_;  // of the first direction
  const MultiLayerReserveLayout layout_;
  ReserveParts parts_;
  int64_t body_ = 0;  // offset of the values of layout_ in bytes
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_
