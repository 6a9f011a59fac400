#include "backends/cuda/multi_layer/fused.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/cudnn/sequences.h"
#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {

template <class T>
bool OwnStack<T>::Serves(const MultiLayerRnn& problem) {
  const auto& lengths = problem.lengths;
  const bool all_begin =
      std::find(lengths.begin(), lengths.end(), 0) == lengths.end();
  return (all_begin || !problem.model.projected()) &&
         problem.batch <=
             std::numeric_limits<int32_t>::max() / problem.model.cell_size;
}

template <class T>
Status OwnStack<T>::Begin(const Device& device, bool is_training) {
  if (!Serves(problem_)) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: not by CUDA's own kernels");
  }
  device_ = &device;
  rows_ = problem_.time * problem_.batch;
  sequence_.batch = problem_.batch;
  sequence_.time = sequence_.steps = problem_.time;
  sequence_.time_major = problem_.time_major;
  if (HasPadding()) {
    const std::vector<int32_t> lengths(problem_.lengths.begin(),
                                       problem_.lengths.end());
    sequence_.steps = *std::max_element(lengths.begin(), lengths.end());
    int32_t* on_device = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(problem_.batch, &on_device));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CopyFromHost(device, lengths.data(), problem_.batch, on_device));
    sequence_.lengths = on_device;
  }
  if (!is_training) return Status();
  const auto add = [this](int64_t width) {
    return parts_.Add(rows_ * width * static_cast<int64_t>(sizeof(T)));
  };
  for (int64_t p = 0; p < model_.pseudo_layers(); ++p) {
    Kept kept;
    kept.steps = add(SavedCount(model_.cell) * model_.cell_size);
    if (model_.projected()) kept.unprojected_h = add(model_.cell_size);
    kept_.push_back(kept);
  }
  for (int64_t layer = 0; !IsLast(layer); ++layer) {
    inner_.push_back(add(model_.output_size()));
  }
  return Status();
}

template <class T>
Status OwnStack<T>::MakeRows(int64_t width, T** rows) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(rows_ * width, rows));
  return ClearPadding(width, *rows);
}

template <class T>
Status OwnStack<T>::Dropped(int64_t layer, const T* reserve, const T* from,
                            const T** to) const {
  *to = from;
  if (mask_ == nullptr) return Status();
  const auto* key = KeyOf(reinterpret_cast<const char*>(reserve));
  auto drop = OutputsToDrop<T>(problem_, *mask_, key, layer, from);
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(rows_ * drop.width, &drop.to));
  *to = drop.to;
  return Drop(*device_, drop);
}

template <class T>
Status OwnStack<T>::Forward(const MultiLayerForward<T>& t) {
  const int64_t width = model_.output_size();
  if (t.reserve) {
    char* const reserve = reinterpret_cast<char*>(t.reserve);
    const int64_t header = sizeof(ReserveHeader);
    // Steps of padding leave nothing.
    TF_LSTM_OPS_RETURN_IF_ERROR(
        HasPadding() ? device_->Zero(reserve + header, parts_.bytes() - header)
                     : parts_.ClearGaps(*device_, reserve));
  }
  const T* x = t.input;
  for (int64_t layer = 0; layer < model_.layers; ++layer) {
    T* y = t.output;
    if (IsLast(layer)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ClearPadding(width, y));
    } else if (t.reserve) {
      y = Part(t.reserve, inner_[layer]);
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(MakeRows(width, &y));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ForwardLayer(t, layer, x, y));
    if (!IsLast(layer)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Dropped(layer, t.reserve, y, &x));
    }
  }
  return Status();
}

template <class T>
template <class Tensors>
void OwnStack<T>::SetLayer(const Tensors& t, int64_t layer, int64_t direction,
                           const T* x, LayerDirection<T>* args) const {
  const int64_t p = PseudoLayer(layer, direction);
  args->config = LayerConfig(model_, layer);
  args->sequence = sequence_;
  args->sequence.reversed = direction == 1;
  args->weights = LayerWeights(problem_, layer, direction, t.params);
  args->x = x;
  args->x_stride = model_.InputSize(layer);
  args->h0 = StatesOf(t.input_h, p, model_.hidden_size);
  args->c0 = StatesOf(t.input_c, p, model_.cell_size);
}

template <class T>
Status OwnStack<T>::ForwardLayer(const MultiLayerForward<T>& t, int64_t layer,
                                 const T* x, T* y) const {
  for (int64_t d = 0; d < model_.directions; ++d) {
    const int64_t p = PseudoLayer(layer, d);
    LayerForward<T> args;
    SetLayer(t, layer, d, x, &args);
    args.h = y + d * model_.hidden_size;
    args.h_stride = model_.output_size();
    if (t.reserve) {
      args.saved = ActivationsByOutputRow(Part(t.reserve, kept_[p].steps),
                                          model_.cell, model_.cell_size);
    }
    args.unprojected_h = Unprojected(t.reserve, p);
    args.final_h = StatesOf(t.output_h, p, model_.hidden_size);
    args.final_c = StatesOf(t.output_c, p, model_.cell_size);
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeForward(*device_, args));
  }
  return Status();
}

template <class T>
Status OwnStack<T>::Backward(const MultiLayerBackward<T>& t) {
  const T* y_grad = t.output_backprop;
  for (int64_t layer = model_.layers - 1; layer >= 0; --layer) {
    const T* x = t.input;
    T* dx = t.input_backprop;
    if (layer > 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Dropped(
          layer - 1, t.reserve, Part(t.reserve, inner_[layer - 1]), &x));
      TF_LSTM_OPS_RETURN_IF_ERROR(MakeRows(model_.output_size(), &dx));
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(ClearPadding(model_.input_size, dx));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(BackwardLayer(t, layer, x, y_grad, dx));
    if (layer > 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Dropped(layer - 1, t.reserve, dx, &y_grad));
    }
  }
  return Status();
}

template <class T>
Status OwnStack<T>::BackwardLayer(const MultiLayerBackward<T>& t, int64_t layer,
                                  const T* x, const T* y_grad, T* dx) const {
  const T* y = IsLast(layer) ? t.output : Part(t.reserve, inner_[layer]);
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  for (int64_t d = 0; d < model_.directions; ++d) {
    const int64_t p = PseudoLayer(layer, d);
    LayerBackward<T> args;
    SetLayer(t, layer, d, x, &args);
    args.h = y + d * hidden;
    args.h_grad = y_grad + d * hidden;
    args.h_stride = args.h_grad_stride = model_.output_size();
    args.saved = ActivationsByOutputRow(Part(t.reserve, kept_[p].steps),
                                        model_.cell, cell);
    args.unprojected_h = Unprojected(t.reserve, p);
    args.final_h_grad = StatesOf(t.output_h_backprop, p, hidden);
    args.final_c_grad = StatesOf(t.output_c_backprop, p, cell);
    args.h0_grad = StatesOf(t.input_h_backprop, p, hidden);
    args.c0_grad = StatesOf(t.input_c_backprop, p, cell);
    args.weights_grad = LayerWeights(problem_, layer, d, t.params_backprop);
    args.x_grad = dx;
    args.adds_to_x_grad = d > 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeBackward(*device_, args));
  }
  return Status();
}

template class OwnStack<float>;
template class OwnStack<double>;
template class OwnStack<Half>;
template class OwnStack<BFloat16>;

}  // namespace tf_lstm_ops::cuda
