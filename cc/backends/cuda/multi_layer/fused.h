// OwnStack: a call of the CudnnRNN family on our own kernels (rnn.h), layer by
// layer and direction by direction.
//
// reserve_space: the header, then for each pseudo-layer what its steps keep,
// [rows, SavedCount(cell), H], and with a projection h before it, [rows, H];
// then for each layer but the last its outputs, [rows, D*P]. The rows are those
// of the op's sequences.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/fused/layer.h"
#include "backends/cuda/multi_layer/multi_layer.h"

namespace tf_lstm_ops::cuda {

template <class T>
class OwnStack : public Stack<T> {
 public:
  // Whether these kernels have such a call: not with a projection and rows of
  // length zero, nor states that they cannot count.
  static bool Serves(const MultiLayerRnn& problem);

  OwnStack(const MultiLayerRnn& problem, const DropoutMask* mask)
      : problem_(problem), model_(problem.model), mask_(mask) {}

  Status Begin(const Device& device, bool is_training) override;
  int64_t reserve_bytes() const override { return parts_.bytes(); }
  Status Forward(const MultiLayerForward<T>& t) override;
  Status Backward(const MultiLayerBackward<T>& t) override;

 private:
  // Where what is kept of a pseudo-layer begins, in bytes.
  struct Kept {
    int64_t steps = 0, unprojected_h = 0;
  };

  bool IsLast(int64_t layer) const { return layer == model_.layers - 1; }
  bool HasPadding() const { return problem_.valid_steps < rows_; }
  int64_t PseudoLayer(int64_t layer, int64_t direction) const {
    return layer * model_.directions + direction;
  }
  // A part of the reserve; null without one.
  template <class E>
  static E* Part(E* reserve, int64_t offset) {
    return reserve ? reserve + offset / static_cast<int64_t>(sizeof(T))
                   : nullptr;
  }
  // h of a pseudo-layer before its projection; null where it has none.
  template <class E>
  E* Unprojected(E* reserve, int64_t p) const {
    return model_.projected() && reserve ? Part(reserve, kept_[p].unprojected_h)
                                         : nullptr;
  }
  // A pseudo-layer's of states as the op has them; null stays null.
  template <class E>
  States<E> StatesOf(E* states, int64_t p, int64_t width) const {
    const int64_t stride = problem_.StateRow(0, 1) * width;
    return {states ? states + problem_.StateRow(p, 0) * width : nullptr,
            stride};
  }

  // [rows, width]; zeros from each row's length on.
  Status ClearPadding(int64_t width, T* rows) const {
    return HasPadding() ? device_->Zero(rows, rows_ * width) : Status();
  }
  Status MakeRows(int64_t width, T** rows) const;
  // A layer's outputs, or gradients by them, as the next layer sees them.
  Status Dropped(int64_t layer, const T* reserve, const T* from,
                 const T** to) const;

  template <class Tensors>
  void SetLayer(const Tensors& t, int64_t layer, int64_t direction, const T* x,
                LayerDirection<T>* args) const;
  Status ForwardLayer(const MultiLayerForward<T>& t, int64_t layer, const T* x,
                      T* y) const;
  Status BackwardLayer(const MultiLayerBackward<T>& t, int64_t layer,
                       const T* x, const T* y_grad, T* dx) const;

  const MultiLayerRnn& problem_;
  const RnnModel& model_;
  const DropoutMask* const mask_;
  const Device* device_ = nullptr;
  int64_t rows_ = 0;   // of sequences
  Sequence sequence_;  // of the first direction
  ReserveParts parts_;
  std::vector<Kept> kept_;      // by pseudo-layer
  std::vector<int64_t> inner_;  // outputs, by layer
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_FUSED_H_
