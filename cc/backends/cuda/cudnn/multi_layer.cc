#include "backends/cuda/cudnn/multi_layer.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cuda/fused/products.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class C>
constexpr cudnnDataType_t kCudnnDataType = CUDNN_DATA_FLOAT;
template <>
constexpr cudnnDataType_t kCudnnDataType<double> = CUDNN_DATA_DOUBLE;
template <>
constexpr cudnnDataType_t kCudnnDataType<Half> = CUDNN_DATA_HALF;

// The default math type may multiply float as TF32. TF32 represents every
// bfloat16 value exactly.
template <class T>
cudnnMathType_t MathType() {
  if (std::is_same_v<T, Half>) return CUDNN_TENSOR_OP_MATH;
  if (std::is_same_v<T, float> && !AllowsTf32()) return CUDNN_FMA_MATH;
  return CUDNN_DEFAULT_MATH;
}

}  // namespace

template <class T>
Status CudnnMultiLayer<T>::Begin(const Device& device, bool is_training) {
  device_ = &device;
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSizes());
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.Begin(device));
  if (batch_.rows() > 0) TF_LSTM_OPS_RETURN_IF_ERROR(MakeGroups(is_training));
  LayOutReserve();
  return Status();
}

// cuDNN's sizes are ints.
template <class T>
Status CudnnMultiLayer<T>::CheckSizes() const {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t states = model_.pseudo_layers() * rnn_.batch * model_.cell_size;
  for (const int64_t size : {model_.input_size, model_.output_size(), states}) {
    if (size > kMax) {
      return InvalidArgument(
          "input_size, the width of output and the size of input_c must fit "
          "into int32 on CUDA: ",
          model_.input_size, ", ", model_.output_size(), ", ", states);
    }
  }
  return Status();
}

template <class T>
Status CudnnMultiLayer<T>::MakeGroups(bool is_training) {
  const Cudnn* cudnn = nullptr;
  cudnnHandle_t handle = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(Open(&cudnn));
  TF_LSTM_OPS_RETURN_IF_ERROR(CudnnHandle(*cudnn, *device_, &handle));
  call_.emplace(CudnnCall{*device_, *cudnn, handle, model_, batch_});
  const CudnnOptions options = {kCudnnDataType<C>, MathType<T>(),
                                static_cast<cudnnRNNAlgo_t>(algorithm_),
                                batch_.is_padded(), batch_.rows()};
  const int64_t count = mask_ ? 1 : model_.layers;
  int64_t workspace_bytes = 0;
  for (int64_t first = 0; first < model_.layers; first += count) {
    Group group;
    TF_LSTM_OPS_RETURN_IF_ERROR(LayerGroup<C>::Make(
        *call_, options, {first, count}, is_training, &group.layers));
    workspace_bytes =
        std::max(workspace_bytes, group.layers->workspace_bytes());
    groups_.push_back(std::move(group));
  }
  char* workspace = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(workspace_bytes, &workspace));
  workspace_ = workspace;
  return Status();
}

template <class T>
void CudnnMultiLayer<T>::LayOutReserve() {
  for (Group& group : groups_) {
    group.reserve = parts_.Add(group.layers->reserve_bytes());
  }
  const int64_t output_bytes = batch_.SequenceSize(model_.output_size()) *
                               static_cast<int64_t>(sizeof(C));
  for (size_t n = 0; n + 1 < groups_.size(); ++n) {
    groups_[n].output = parts_.Add(output_bytes);
  }
}

template <class T>
template <class Tensors>
Status CudnnMultiLayer<T>::ReadInputs(const Tensors& t,
                                      CudnnInputs<C>* inputs) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadSequences(model_.input_size, t.input, &inputs->x));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadStates(model_.hidden_size, t.input_h, &inputs->h0));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadStates(model_.cell_size, t.input_c, &inputs->c0));
  return ReadParams(t.params, &inputs->params);
}

template <class T>
Status CudnnMultiLayer<T>::ReadParams(const T* params, const C** copy) const {
  if constexpr (std::is_same_v<T, C>) {
    *copy = params;
    return Status();
  } else {
    const int64_t size = rnn_.params.size();
    C* to = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(size, &to));
    *copy = to;
    return ConvertToCudnn<T>(*device_, {1, 1, size, {params}, {to}});
  }
}

template <class T>
Status CudnnMultiLayer<T>::AllocateParams(T* params, C** to) const {
  if constexpr (std::is_same_v<T, C>) {
    *to = params;
    return Status();
  } else {
    return device_->Allocate(rnn_.params.size(), to);
  }
}

template <class T>
Status CudnnMultiLayer<T>::WriteParams(const C* from, T* params) const {
  if constexpr (std::is_same_v<T, C>) {
    return Status();
  } else {
    return ConvertFromCudnn<T>(*device_,
                               {1, 1, rnn_.params.size(), {from}, {params}});
  }
}

template <class T>
Status CudnnMultiLayer<T>::PassStates(const States<const T>& h,
                                      const States<const T>& c, T* to_h,
                                      T* to_c) const {
  if (batch_.has_all_rows()) return Status();
  const int64_t rows = model_.pseudo_layers() * rnn_.batch;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Copy(h.data, rows * h.stride, to_h));
  return IsLstm(model_.cell) ? device_->Copy(c.data, rows * c.stride, to_c)
                             : Status();
}

template <class T>
Status CudnnMultiLayer<T>::ApplyDropout(const Group& group, const char* reserve,
                                        const C* from, const C** to) const {
  auto drop = batch_.template Dropout<C>(*mask_, DropoutKey(reserve),
                                         group.layers->first());
  drop.from = from;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_->Allocate(batch_.SequenceSize(model_.output_size()), &drop.to));
  *to = drop.to;
  return ComputeDropout(*device_, drop);
}

template <class T>
Status CudnnMultiLayer<T>::ComputeForward(const MultiLayerForward<T>& t) {
  const int64_t width = model_.output_size();
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  if (!batch_.has_all_rows()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Zero(t.output, rnn_.rows() * width));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(PassStates({t.input_h, hidden}, {t.input_c, cell},
                                         t.output_h, t.output_c));
  char* reserve = reinterpret_cast<char*>(t.reserve);
  if (reserve) {
    TF_LSTM_OPS_RETURN_IF_ERROR(parts_.ClearGaps(*device_, reserve));
  }
  if (groups_.empty()) return Status();

  CudnnForward<C> all = {};
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadInputs(t, &all));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateSequences(width, t.output, &all.y));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateStates(hidden, t.output_h, &all.final_h));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateStates(cell, t.output_c, &all.final_c));
  TF_LSTM_OPS_RETURN_IF_ERROR(ForwardGroups(all, reserve));
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.WriteSequences(width, all.y, t.output));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.WriteStates(hidden, all.final_h, t.output_h));
  return batch_.WriteStates(cell, all.final_c, t.output_c);
}

template <class T>
Status CudnnMultiLayer<T>::ForwardGroups(const CudnnForward<C>& all,
                                         char* reserve) const {
  CudnnForward<C> t = all;
  for (size_t n = 0; n < groups_.size(); ++n) {
    const Group& group = groups_[n];
    t.y = IsLast(n) ? all.y : reinterpret_cast<C*>(reserve + group.output);
    t.reserve = reserve ? reserve + group.reserve : nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(group.layers->ComputeForward(t, workspace_));
    if (IsLast(n)) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(ApplyDropout(group, reserve, t.y, &t.x));
  }
  return Status();
}

template <class T>
Status CudnnMultiLayer<T>::ComputeBackward(const MultiLayerBackward<T>& t) {
  const int64_t width = model_.output_size(), input = model_.input_size;
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  if (!batch_.has_all_rows()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_->Zero(t.input_backprop, rnn_.rows() * input));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      PassStates({t.output_h_backprop, hidden}, {t.output_c_backprop, cell},
                 t.input_h_backprop, t.input_c_backprop));
  if (groups_.empty()) {
    return device_->Zero(t.params_backprop, rnn_.params.size());
  }

  CudnnBackward<C> all = {};
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadInputs(t, &all));
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.ReadSequences(width, t.output, &all.y));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadSequences(width, t.output_backprop, &all.y_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadStates(hidden, t.output_h_backprop, &all.final_h_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.ReadStates(cell, t.output_c_backprop, &all.final_c_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateSequences(input, t.input_backprop, &all.x_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateStates(hidden, t.input_h_backprop, &all.h0_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.AllocateStates(cell, t.input_c_backprop, &all.c0_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      AllocateParams(t.params_backprop, &all.params_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      BackwardGroups(all, reinterpret_cast<const char*>(t.reserve)));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.WriteSequences(input, all.x_grad, t.input_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.WriteStates(hidden, all.h0_grad, t.input_h_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.WriteStates(cell, all.c0_grad, t.input_c_backprop));
  return WriteParams(all.params_grad, t.params_backprop);
}

template <class T>
Status CudnnMultiLayer<T>::BackwardGroups(const CudnnBackward<C>& all,
                                          const char* reserve) const {
  const auto output_of = [&](const Group& group) {
    return reinterpret_cast<const C*>(reserve + group.output);
  };
  CudnnBackward<C> t = all;
  for (size_t n = groups_.size(); n-- > 0;) {
    const Group& group = groups_[n];
    t.x = all.x;
    t.x_grad = all.x_grad;
    t.y = IsLast(n) ? all.y : output_of(group);
    t.reserve = reserve + group.reserve;
    if (n > 0) {
      const Group& below = groups_[n - 1];
      TF_LSTM_OPS_RETURN_IF_ERROR(
          ApplyDropout(below, reserve, output_of(below), &t.x));
      TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(
          batch_.SequenceSize(model_.output_size()), &t.x_grad));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(group.layers->ComputeBackward(t, workspace_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        batch_.ClearPadding(group.layers->input_size(), t.x_grad));
    if (n == 0) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        ApplyDropout(groups_[n - 1], reserve, t.x_grad, &t.y_grad));
  }
  return Status();
}

template class CudnnMultiLayer<float>;
template class CudnnMultiLayer<double>;
template class CudnnMultiLayer<Half>;
template class CudnnMultiLayer<BFloat16>;

}  // namespace tf_lstm_ops::cuda
