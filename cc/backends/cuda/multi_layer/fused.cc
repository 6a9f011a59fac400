#include "backends/cuda/multi_layer/fused.h"

#include <algorithm>

#include "backends/cuda/cudnn/sequences.h"
#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
bool FusedMultiLayer<T>::Supports(const MultiLayerRnn& rnn) {
  const auto& lengths = rnn.lengths;
  const bool has_empty_rows =
      std::find(lengths.begin(), lengths.end(), 0) != lengths.end();
  return !(has_empty_rows && rnn.model.projected()) &&
         FitsFusedKernels(rnn.batch, rnn.model.cell_size);
}

template <class T>
MultiLayerReserveLayout FusedMultiLayer<T>::MakeLayout(
    const MultiLayerRnn& rnn) {
  ReserveContents contents;
  contents.rows = rnn.rows();
  contents.output_layers = rnn.model.layers - 1;
  contents.has_unprojected_h = rnn.model.projected();
  contents.alignment = ReserveParts::kAlignment / sizeof(T);
  return {rnn.model, contents};
}

template <class T>
Status FusedMultiLayer<T>::Begin(const Device& device, bool is_training) {
  if (!Supports(rnn_)) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: CUDA's own kernels do not support this "
                      "multi-layer RNN");
  }
  device_ = &device;
  if (is_training) {
    body_ = parts_.Add(layout_.size() * static_cast<int64_t>(sizeof(T)));
  }
  return SetSequence();
}

template <class T>
Status FusedMultiLayer<T>::SetSequence() {
  sequence_.batch = rnn_.batch;
  sequence_.time = sequence_.steps = rnn_.time;
  sequence_.time_major = rnn_.time_major;
  if (!rnn_.has_padding()) return Status();
  const auto& lengths = rnn_.lengths;
  sequence_.steps = *std::max_element(lengths.begin(), lengths.end());
  int32_t* on_device = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(rnn_.batch, &on_device));
  sequence_.lengths = on_device;
  return CopyFromHost(*device_, lengths.data(), rnn_.batch, on_device);
}

template <class T>
Status FusedMultiLayer<T>::AllocateRows(int64_t width, T** rows) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(rnn_.rows() * width, rows));
  return ClearPadding(width, *rows);
}

// Nothing is saved for padding. If there is padding, the whole reserve is set
// to zero.
template <class T>
Status FusedMultiLayer<T>::ClearReserve(T* reserve) const {
  auto* const bytes = reinterpret_cast<char*>(reserve);
  if (rnn_.has_padding()) {
    const int64_t header = sizeof(ReserveHeader);
    const int64_t size = reserve_size() * static_cast<int64_t>(sizeof(T));
    return device_->Zero(bytes + header, size - header);
  }
  for (const auto& gap : layout_.Gaps()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_->Zero(At(reserve, gap.offset), gap.size));
  }
  return parts_.ClearGaps(*device_, bytes);
}

template <class T>
Status FusedMultiLayer<T>::ApplyDropout(int64_t layer, const T* reserve,
                                        const T* from, const T** to) const {
  *to = from;
  if (mask_ == nullptr) return Status();
  const auto* key = DropoutKey(reinterpret_cast<const char*>(reserve));
  auto drop = DropoutOfLayer<T>(rnn_, *mask_, key, layer);
  drop.from = from;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_->Allocate(rnn_.rows() * drop.width, &drop.to));
  *to = drop.to;
  return ComputeDropout(*device_, drop);
}

template <class T>
Status FusedMultiLayer<T>::ComputeForward(const MultiLayerForward<T>& t) {
  if (t.reserve) TF_LSTM_OPS_RETURN_IF_ERROR(ClearReserve(t.reserve));
  const int64_t width = model_.output_size();
  const T* x = t.input;
  for (int64_t layer = 0; layer < model_.layers; ++layer) {
    T* h = t.output;
    if (IsLast(layer)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ClearPadding(width, h));
    } else if (t.reserve) {
      h = LayerOutput(t.reserve, layer);
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(width, &h));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ForwardLayer(t, layer, x, h));
    if (IsLast(layer)) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(ApplyDropout(layer, t.reserve, h, &x));
  }
  return Status();
}

template <class T>
template <class Tensors>
void FusedMultiLayer<T>::SetLayer(const Tensors& t, int64_t layer,
                                  int64_t direction,
                                  LayerDirection<T>* args) const {
  const int64_t p = model_.PseudoLayer(layer, direction);
  args->config = LayerConfig(model_, layer);
  args->sequence = sequence_;
  args->sequence.reversed = direction == 1;
  args->weights = LayerWeights(rnn_, layer, direction, t.params);
  args->x_stride = args->config.input_size;
  args->h0 = State(t.input_h, p, model_.hidden_size);
  args->c0 = State(t.input_c, p, model_.cell_size);
}

template <class T>
Status FusedMultiLayer<T>::ForwardLayer(const MultiLayerForward<T>& t,
                                        int64_t layer, const T* x, T* h) const {
  for (int64_t d = 0; d < model_.directions; ++d) {
    const int64_t p = model_.PseudoLayer(layer, d);
    LayerForward<T> args;
    SetLayer(t, layer, d, &args);
    args.x = x;
    args.h = h + d * model_.hidden_size;
    args.h_stride = model_.output_size();
    if (t.reserve) {
      args.saved = ActivationsByOutputRow(At(t.reserve, layout_.Activations(p)),
                                          model_.cell, model_.cell_size);
      args.unprojected_h = UnprojectedH(t.reserve, p);
    }
    args.final_h = State(t.output_h, p, model_.hidden_size);
    args.final_c = State(t.output_c, p, model_.cell_size);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cuda::ComputeForward(*device_, args, algorithm_));
  }
  return Status();
}

template <class T>
Status FusedMultiLayer<T>::ComputeBackward(const MultiLayerBackward<T>& t) {
  const T* h_grad = t.output_backprop;
  for (int64_t layer = model_.layers - 1; layer >= 0; --layer) {
    LayerGrads grads = {t.input, h_grad, t.input_backprop};
    if (layer > 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ApplyDropout(
          layer - 1, t.reserve, LayerOutput(t.reserve, layer - 1), &grads.x));
      TF_LSTM_OPS_RETURN_IF_ERROR(
          AllocateRows(model_.output_size(), &grads.x_grad));
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          ClearPadding(model_.input_size, grads.x_grad));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(BackwardLayer(t, layer, grads));
    if (layer == 0) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        ApplyDropout(layer - 1, t.reserve, grads.x_grad, &h_grad));
  }
  return Status();
}

template <class T>
Status FusedMultiLayer<T>::BackwardLayer(const MultiLayerBackward<T>& t,
                                         int64_t layer,
                                         const LayerGrads& grads) const {
  const T* h = IsLast(layer) ? t.output : LayerOutput(t.reserve, layer);
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  for (int64_t d = 0; d < model_.directions; ++d) {
    const int64_t p = model_.PseudoLayer(layer, d);
    LayerBackward<T> args;
    SetLayer(t, layer, d, &args);
    args.x = grads.x;
    args.h = h + d * hidden;
    args.h_grad = grads.h_grad + d * hidden;
    args.h_stride = args.h_grad_stride = model_.output_size();
    args.saved = ActivationsByOutputRow(At(t.reserve, layout_.Activations(p)),
                                        model_.cell, cell);
    args.unprojected_h = UnprojectedH(t.reserve, p);
    args.final_h_grad = State(t.output_h_backprop, p, hidden);
    args.final_c_grad = State(t.output_c_backprop, p, cell);
    args.h0_grad = State(t.input_h_backprop, p, hidden);
    args.c0_grad = State(t.input_c_backprop, p, cell);
    args.weights_grad = LayerWeights(rnn_, layer, d, t.params_backprop);
    args.x_grad = grads.x_grad;
    args.adds_to_x_grad = d > 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cuda::ComputeBackward(*device_, args, algorithm_));
  }
  return Status();
}

template class FusedMultiLayer<float>;
template class FusedMultiLayer<double>;
template class FusedMultiLayer<Half>;
template class FusedMultiLayer<BFloat16>;

}  // namespace tf_lstm_ops::cuda
