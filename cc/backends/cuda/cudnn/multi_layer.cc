#include "backends/cuda/cudnn/multi_layer.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/fused/products.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class C>
constexpr cudnnDataType_t kCudnnType = CUDNN_DATA_FLOAT;
template <>
constexpr cudnnDataType_t kCudnnType<double> = CUDNN_DATA_DOUBLE;
template <>
constexpr cudnnDataType_t kCudnnType<Half> = CUDNN_DATA_HALF;

// TF32 has more fraction bits than bfloat16: products of such lose nothing.
template <class T>
cudnnMathType_t Math() {
  if (std::is_same_v<T, Half>) return CUDNN_TENSOR_OP_MATH;
  if (std::is_same_v<T, float> && !AllowsTf32()) return CUDNN_FMA_MATH;
  return CUDNN_DEFAULT_MATH;
}

Status Describe(const Cudnn& cudnn, cudnnDataType_t type, int64_t states,
                int64_t rows, int64_t width, cudnnTensorDescriptor_t tensor) {
  const int dims[] = {static_cast<int>(states), static_cast<int>(rows),
                      static_cast<int>(width)};
  const int strides[] = {static_cast<int>(rows * width),
                         static_cast<int>(width), 1};
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnSetTensorNdDescriptor, tensor,
                                    type, 3, dims, strides);
  return Status();
}

}  // namespace

template <class T>
Status CudnnStack<T>::Begin(const Device& device, bool is_training) {
  device_ = &device;
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSizes());
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.Begin(device));
  if (batch_.rows() > 0) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Open(&cudnn_));
    TF_LSTM_OPS_RETURN_IF_ERROR(CudnnHandle(*cudnn_, device, &handle_));
    const CudnnOptions options = {kCudnnType<C>, Math<T>(), algorithm_,
                                  batch_.is_padded(), batch_.rows()};
    const int64_t each = mask_ ? 1 : model_.layers;
    for (int64_t first = 0; first < model_.layers; first += each) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AddPart(first, each, options, is_training));
    }
    size_t workspace_bytes = 0;
    for (const auto& part : parts_) {
      workspace_bytes = std::max(workspace_bytes, part->workspace_bytes);
    }
    char* workspace = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device.Allocate(static_cast<int64_t>(workspace_bytes), &workspace));
    workspace_ = workspace;
  }
  LayOutReserve();
  return Status();
}

// cuDNN counts in int.
template <class T>
Status CudnnStack<T>::CheckSizes() const {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t states =
      model_.pseudo_layers() * problem_.batch * model_.cell_size;
  for (const int64_t size : {model_.input_size, model_.output_size(), states}) {
    if (size > kMost) {
      return InvalidArgument(
          "input_size, the width of output and the size of input_c must fit "
          "into int32 on CUDA: ",
          model_.input_size, ", ", model_.output_size(), ", ", states);
    }
  }
  return Status();
}

template <class T>
Status CudnnStack<T>::AddPart(int64_t first, int64_t count,
                              const CudnnOptions& options, bool is_training) {
  auto part = std::make_unique<Part>();
  part->first = first;
  TF_LSTM_OPS_RETURN_IF_ERROR(CudnnLayers::Find(
      *cudnn_, *device_, model_, options, first, count, &part->layers));
  TF_LSTM_OPS_RETURN_IF_ERROR(part->x.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(part->y.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(part->h.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(part->c.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.Describe(
      *cudnn_, options.type, part->layers->input_size(), part->x.get()));
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.Describe(
      *cudnn_, options.type, model_.output_size(), part->y.get()));
  const int64_t states = count * model_.directions;
  TF_LSTM_OPS_RETURN_IF_ERROR(Describe(*cudnn_, options.type, states,
                                       batch_.rows(), model_.hidden_size,
                                       part->h.get()));
  TF_LSTM_OPS_RETURN_IF_ERROR(Describe(*cudnn_, options.type, states,
                                       batch_.rows(), model_.cell_size,
                                       part->c.get()));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnGetRNNTempSpaceSizes, handle_, part->layers->descriptor(),
      is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      part->x.get(), &part->workspace_bytes, &part->reserve_bytes);
  parts_.push_back(std::move(part));
  return Status();
}

template <class T>
void CudnnStack<T>::LayOutReserve() {
  for (const auto& part : parts_) {
    part->reserve = reserve_.Add(static_cast<int64_t>(part->reserve_bytes));
  }
  for (const auto& part : parts_) {
    if (IsLast(*part)) break;
    part->inner = reserve_.Add(InnerSize() * static_cast<int64_t>(sizeof(C)));
  }
}

template <class T>
template <class Tensors>
Status CudnnStack<T>::FetchInputs(const Tensors& t, Inputs* inputs) const {
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.SequencesIn(model_.input_size, t.input, &inputs->x));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesIn(model_.hidden_size, t.input_h, &inputs->hx));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesIn(model_.cell_size, t.input_c, &inputs->cx));
  return FetchParams(t.params, &inputs->params);
}

template <class T>
Status CudnnStack<T>::FetchParams(const T* params, const C** copy) const {
  if constexpr (std::is_same_v<T, C>) {
    *copy = params;
    return Status();
  } else {
    const int64_t size = problem_.params.size();
    C* to = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(size, &to));
    *copy = to;
    return MoveIn<T>(*device_, {1, 1, size, {params}, {to}});
  }
}

template <class T>
Status CudnnStack<T>::Weights(const Part& part, const C* params,
                              const C** weights) const {
  const CudnnWeights& map = part.layers->weights();
  *weights = params;
  if (map.are_params()) return Status();
  C* space = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(map.size(), &space));
  *weights = space;
  return map.CopyIn(*device_, params, space);
}

template <class T>
Status CudnnStack<T>::MakeDropped(const Part& part, const char* reserve,
                                  const C* outputs, const C** dropped) const {
  C* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(InnerSize(), &to));
  *dropped = to;
  return batch_.Dropped(*mask_, KeyOf(reserve), part.first, outputs, to);
}

template <class T>
Status CudnnStack<T>::PassStates(const T* from_h, const T* from_c, T* to_h,
                                 T* to_c) const {
  if (batch_.is_whole()) return Status();
  const int64_t rows = model_.pseudo_layers() * problem_.batch;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_->Copy(from_h, rows * model_.hidden_size, to_h));
  return is_lstm() ? device_->Copy(from_c, rows * model_.cell_size, to_c)
                   : Status();
}

template <class T>
Status CudnnStack<T>::Forward(const MultiLayerForward<T>& t) {
  const int64_t width = model_.output_size();
  const int64_t all = problem_.time * problem_.batch;
  if (!batch_.is_whole()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Zero(t.output, all * width));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      PassStates(t.input_h, t.input_c, t.output_h, t.output_c));
  char* reserve = reinterpret_cast<char*>(t.reserve);
  if (reserve) {
    TF_LSTM_OPS_RETURN_IF_ERROR(reserve_.ClearGaps(*device_, reserve));
  }
  if (parts_.empty()) return Status();

  Inputs inputs = {};
  TF_LSTM_OPS_RETURN_IF_ERROR(FetchInputs(t, &inputs));
  C *output = nullptr, *hy = nullptr, *cy = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.SequencesFor(width, t.output, &output));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesFor(model_.hidden_size, t.output_h, &hy));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesFor(model_.cell_size, t.output_c, &cy));
  const C* x = inputs.x;
  for (const auto& part : parts_) {
    C* y = IsLast(*part) ? output : reinterpret_cast<C*>(reserve + part->inner);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        RunForward(*part, inputs, x, y, hy, cy, reserve));
    if (!IsLast(*part)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(MakeDropped(*part, reserve, y, &x));
    }
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.SequencesOut(width, output, t.output));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesOut(model_.hidden_size, hy, t.output_h));
  return batch_.StatesOut(model_.cell_size, cy, t.output_c);
}

template <class T>
Status CudnnStack<T>::RunForward(const Part& part, const Inputs& inputs,
                                 const C* x, C* y, C* hy, C* cy,
                                 char* reserve) const {
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  const C* weights = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(Weights(part, inputs.params, &weights));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNForward, handle_, part.layers->descriptor(),
      reserve ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      batch_.lengths(), part.x.get(), x, part.y.get(), y, part.h.get(),
      StatesOf(part, hidden, inputs.hx), StatesOf(part, hidden, hy),
      part.c.get(), StatesOf(part, cell, inputs.cx), StatesOf(part, cell, cy),
      part.layers->weights().size() * sizeof(C), weights, part.workspace_bytes,
      workspace_, reserve ? part.reserve_bytes : 0,
      reserve ? reserve + part.reserve : nullptr);
  return Status();
}

template <class T>
Status CudnnStack<T>::Backward(const MultiLayerBackward<T>& t) {
  const int64_t width = model_.output_size();
  const int64_t all = problem_.time * problem_.batch;
  if (!batch_.is_whole()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_->Zero(t.input_backprop, all * model_.input_size));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      PassStates(t.output_h_backprop, t.output_c_backprop, t.input_h_backprop,
                 t.input_c_backprop));
  if (parts_.empty()) {
    return device_->Zero(t.params_backprop, problem_.params.size());
  }

  Inputs inputs = {};
  Gradients g = {};
  const C* dy = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FetchInputs(t, &inputs));
  TF_LSTM_OPS_RETURN_IF_ERROR(batch_.SequencesIn(width, t.output, &g.y));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.SequencesIn(width, t.output_backprop, &dy));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesIn(model_.hidden_size, t.output_h_backprop, &g.dhy));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesIn(model_.cell_size, t.output_c_backprop, &g.dcy));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.SequencesFor(model_.input_size, t.input_backprop, &g.dx));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesFor(model_.hidden_size, t.input_h_backprop, &g.dhx));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesFor(model_.cell_size, t.input_c_backprop, &g.dcx));
  TF_LSTM_OPS_RETURN_IF_ERROR(ParamsFor(t.params_backprop, &g.params));
  TF_LSTM_OPS_RETURN_IF_ERROR(BackwardParts(t.reserve, inputs, dy, g));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.SequencesOut(model_.input_size, g.dx, t.input_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesOut(model_.hidden_size, g.dhx, t.input_h_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      batch_.StatesOut(model_.cell_size, g.dcx, t.input_c_backprop));
  return ParamsOut(g.params, t.params_backprop);
}

template <class T>
Status CudnnStack<T>::BackwardParts(const T* reserve, const Inputs& inputs,
                                    const C* dy, const Gradients& g) const {
  const char* kept = reinterpret_cast<const char*>(reserve);
  const auto inner = [&](const Part& part) {
    return reinterpret_cast<const C*>(kept + part.inner);
  };
  for (size_t n = parts_.size(); n-- > 0;) {
    const Part& part = *parts_[n];
    const C *x = inputs.x, *y = IsLast(part) ? g.y : inner(part);
    C* dx = g.dx;
    if (n > 0) {
      const Part& below = *parts_[n - 1];
      TF_LSTM_OPS_RETURN_IF_ERROR(MakeDropped(below, kept, inner(below), &x));
      TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(InnerSize(), &dx));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        RunBackward(part, inputs, x, y, dy, dx, g, kept));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        batch_.ClearPadding(part.layers->input_size(), dx));
    if (n > 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(MakeDropped(*parts_[n - 1], kept, dx, &dy));
    }
  }
  return Status();
}

template <class T>
Status CudnnStack<T>::RunBackward(const Part& part, const Inputs& inputs,
                                  const C* x, const C* y, const C* dy, C* dx,
                                  const Gradients& g, const char* kept) const {
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  const CudnnWeights& map = part.layers->weights();
  const size_t weight_bytes = map.size() * sizeof(C);
  const C* weights = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(Weights(part, inputs.params, &weights));
  // cuDNN writes to its reserve, which may be asked for gradients again.
  char* reserve = nullptr;
  const auto reserve_bytes = static_cast<int64_t>(part.reserve_bytes);
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(reserve_bytes, &reserve));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_->Copy(kept + part.reserve, reserve_bytes, reserve));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNBackwardData_v8, handle_, part.layers->descriptor(),
      batch_.lengths(), part.y.get(), y, dy, part.x.get(), dx, part.h.get(),
      StatesOf(part, hidden, inputs.hx), StatesOf(part, hidden, g.dhy),
      StatesOf(part, hidden, g.dhx), part.c.get(),
      StatesOf(part, cell, inputs.cx), StatesOf(part, cell, g.dcy),
      StatesOf(part, cell, g.dcx), weight_bytes, weights, part.workspace_bytes,
      workspace_, part.reserve_bytes, reserve);
  // It adds to what it finds.
  C* gradients = g.params;
  if (!map.are_params()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(map.size(), &gradients));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(device_->Zero(gradients, map.size()));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNBackwardWeights_v8, handle_, part.layers->descriptor(),
      CUDNN_WGRAD_MODE_ADD, batch_.lengths(), part.x.get(), x, part.h.get(),
      StatesOf(part, hidden, inputs.hx), part.y.get(), y, weight_bytes,
      gradients, part.workspace_bytes, workspace_, part.reserve_bytes, reserve);
  return map.are_params() ? Status()
                          : map.CopyOut(*device_, gradients, g.params);
}

template <class T>
Status CudnnStack<T>::ParamsFor(T* params, C** place) const {
  if constexpr (std::is_same_v<T, C>) {
    *place = params;
    return Status();
  } else {
    return device_->Allocate(problem_.params.size(), place);
  }
}

template <class T>
Status CudnnStack<T>::ParamsOut(const C* from, T* params) const {
  if constexpr (std::is_same_v<T, C>) {
    return Status();
  } else {
    const int64_t size = problem_.params.size();
    return MoveOut<T>(*device_, {1, 1, size, {from}, {params}});
  }
}

template class CudnnStack<float>;
template class CudnnStack<double>;
template class CudnnStack<Half>;
template class CudnnStack<BFloat16>;

}  // namespace tf_lstm_ops::cuda
