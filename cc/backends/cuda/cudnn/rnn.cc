#include "backends/cuda/cudnn/rnn.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "backends/cuda/layer/products.h"
#include "backends/cuda/layer/tensors.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
constexpr cudnnDataType_t kDataType =
    std::is_same_v<T, double> ? CUDNN_DATA_DOUBLE
    : std::is_same_v<T, Half> ? CUDNN_DATA_HALF
                              : CUDNN_DATA_FLOAT;

// The default math type may multiply float as TF32.
template <class T>
cudnnMathType_t MathType() {
  if (std::is_same_v<T, Half>) return CUDNN_TENSOR_OP_MATH;
  if (std::is_same_v<T, float> && !AllowsTf32()) return CUDNN_FMA_MATH;
  return CUDNN_DEFAULT_MATH;
}

cudnnRNNMode_t Mode(CellKind cell) {
  switch (cell) {
    case CellKind::kGru:
      return CUDNN_GRU;
    case CellKind::kTanh:
      return CUDNN_RNN_TANH;
    case CellKind::kRelu:
      return CUDNN_RNN_RELU;
    default:
      return CUDNN_LSTM;
  }
}

}  // namespace

template <class T>
CudnnRnn<T>::CudnnRnn(const Device& device, const MultiLayerRnn& rnn)
    : device_(device), rnn_(rnn), model_(rnn.model), lengths_(rnn.lengths) {
  for (int64_t b = 0; b < rnn.batch; ++b) {
    if (lengths_[b] > 0) continue;
    empty_rows_.push_back(b);
    lengths_[b] = 1;
  }
}

template <class T>
Status CudnnRnn<T>::Begin(bool is_training) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSizes());
  if (is_empty()) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(Open(&cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(CudnnHandle(*cudnn_, device_, &handle_));
  TF_LSTM_OPS_RETURN_IF_ERROR(CopyLengths());
  TF_LSTM_OPS_RETURN_IF_ERROR(MakeRnn());
  TF_LSTM_OPS_RETURN_IF_ERROR(MakeDescriptors());
  return FindSizes(is_training);
}

// cuDNN's sizes are ints.
template <class T>
Status CudnnRnn<T>::CheckSizes() const {
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
Status CudnnRnn<T>::CopyLengths() {
  const auto copy = [&](const std::vector<int32_t>& from, const int32_t** to) {
    int32_t* data = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.batch, &data));
    *to = data;
    return device_.CopyFromHost(from.data(), rnn_.batch, data);
  };
  TF_LSTM_OPS_RETURN_IF_ERROR(copy(rnn_.lengths, &device_lengths_));
  return copy(lengths_, &device_cudnn_lengths_);
}

template <class T>
Status CudnnRnn<T>::MakeRnn() {
  TF_LSTM_OPS_RETURN_IF_ERROR(dropout_.Make(*cudnn_));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(*cudnn_, cudnnSetDropoutDescriptor,
                                    dropout_.get(), handle_, 0, nullptr, 0, 0);
  TF_LSTM_OPS_RETURN_IF_ERROR(descriptor_.Make(*cudnn_));
  const bool is_double = std::is_same_v<T, double>;
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnSetRNNDescriptor_v8, descriptor_.get(),
      CUDNN_RNN_ALGO_STANDARD, Mode(model_.cell), CUDNN_RNN_DOUBLE_BIAS,
      model_.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
      model_.skip_input ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, kDataType<T>,
      is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, MathType<T>(),
      static_cast<int32_t>(model_.input_size),
      static_cast<int32_t>(model_.cell_size),
      static_cast<int32_t>(model_.hidden_size),
      static_cast<int32_t>(model_.layers), dropout_.get(),
      CUDNN_RNN_PADDED_IO_ENABLED);
  return Status();
}

template <class T>
Status CudnnRnn<T>::Describe(int64_t width,
                             cudnnRNNDataDescriptor_t data) const {
  double zero = 0;  // in every type; cuDNN writes it to the padding of outputs
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnSetRNNDataDescriptor, data, kDataType<T>,
      rnn_.time_major ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                      : CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
      static_cast<int>(rnn_.time), static_cast<int>(rnn_.batch),
      static_cast<int>(width), lengths_.data(), &zero);
  return Status();
}

template <class T>
Status CudnnRnn<T>::MakeDescriptors() {
  TF_LSTM_OPS_RETURN_IF_ERROR(x_.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(y_.Make(*cudnn_));
  TF_LSTM_OPS_RETURN_IF_ERROR(Describe(model_.input_size, x_.get()));
  TF_LSTM_OPS_RETURN_IF_ERROR(Describe(model_.output_size(), y_.get()));
  const auto states = [&](int64_t width, TensorDescriptor* tensor) {
    TF_LSTM_OPS_RETURN_IF_ERROR(tensor->Make(*cudnn_));
    const int dims[] = {static_cast<int>(model_.pseudo_layers()),
                        static_cast<int>(rnn_.batch), static_cast<int>(width)};
    const int strides[] = {dims[1] * dims[2], dims[2], 1};
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(*cudnn_, cudnnSetTensorNdDescriptor,
                                      tensor->get(), kDataType<T>, 3, dims,
                                      strides);
    return Status();
  };
  TF_LSTM_OPS_RETURN_IF_ERROR(states(model_.hidden_size, &h_));
  return states(model_.cell_size, &c_);
}

template <class T>
Status CudnnRnn<T>::FindSizes(bool is_training) {
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnGetRNNTempSpaceSizes, handle_, descriptor_.get(),
      is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      x_.get(), &workspace_bytes_, &reserve_bytes_);
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(*cudnn_, cudnnGetRNNWeightSpaceSize,
                                    handle_, descriptor_.get(), &weight_bytes_);
  const auto want = static_cast<size_t>(rnn_.params.size()) * sizeof(T);
  if (weight_bytes_ == want) return Status();
  return MakeStatus(Code::kInternal, "tf_lstm_ops: cuDNN ",
                    cudnn_->cudnnGetVersion(), " has a weight space of ",
                    weight_bytes_, " bytes where params has ", want);
}

template <class T>
Status CudnnRnn<T>::Mask(const T* from, int64_t width, T* to) const {
  DropNarrow<T> a;
  a.sequence.batch = rnn_.batch;
  a.sequence.time = a.sequence.steps = rnn_.time;
  a.sequence.time_major = rnn_.time_major;
  a.sequence.lengths = device_lengths_;
  a.rows = rnn_.rows();
  a.width = a.from_stride = width;
  a.from = from;
  a.to = to;
  return ComputeDropRows(device_, a);
}

template <class T>
Status CudnnRnn<T>::ReadSequence(const T* data, int64_t width,
                                 const T** read) const {
  *read = data;
  if (!has_empty_rows()) return Status();
  T* copy = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.rows() * width, &copy));
  *read = copy;
  return Mask(data, width, copy);
}

template <class T>
Status CudnnRnn<T>::Transpose(const T* from, int64_t width, bool to_op,
                              T* to) const {
  const int64_t states = model_.pseudo_layers(), batch = rnn_.batch;
  for (int64_t p = 0; p < states; ++p) {
    const int64_t op = p * width, cudnn = p * batch * width;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        to_op
            ? Copy(device_, CopyRows<T, T>{batch, width, from + cudnn, width,
                                           to + op, states * width})
            : Copy(device_, CopyRows<T, T>{batch, width, from + op,
                                           states * width, to + cudnn, width}));
  }
  return Status();
}

template <class T>
Status CudnnRnn<T>::ReadState(const T* data, int64_t width, bool clears,
                              const T** read) const {
  *read = data;
  if (!data || (rnn_.time_major && !clears)) return Status();
  const int64_t states = model_.pseudo_layers(), batch = rnn_.batch;
  T* copy = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(states * batch * width, &copy));
  *read = copy;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      rnn_.time_major ? device_.Copy(data, states * batch * width, copy)
                      : Transpose(data, width, false, copy));
  for (int64_t p = 0; clears && p < states; ++p) {
    for (const int64_t b : empty_rows_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Zero(copy + (p * batch + b) * width, width));
    }
  }
  return Status();
}

template <class T>
Status CudnnRnn<T>::AllocateState(T* data, int64_t width, T** to) const {
  *to = data;
  if (rnn_.time_major || !data) return Status();
  return device_.Allocate(model_.pseudo_layers() * rnn_.batch * width, to);
}

template <class T>
Status CudnnRnn<T>::WriteState(const T* from, int64_t width, const T* other,
                               T* data) const {
  if (!data) return Status();
  if (from != data) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Transpose(from, width, true, data));
  }
  for (const int64_t b : empty_rows_) {
    for (int64_t p = 0; p < model_.pseudo_layers(); ++p) {
      const int64_t offset = rnn_.StateRow(p, b) * width;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Copy(other + offset, width, data + offset));
    }
  }
  return Status();
}

template <class T>
Status CudnnRnn<T>::ComputeForward(const MultiLayerForward<T>& t) const {
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  const int64_t rows = model_.pseudo_layers() * rnn_.batch;
  if (is_empty()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Copy(t.input_h, rows * hidden, t.output_h));
    return t.output_c ? device_.Copy(t.input_c, rows * cell, t.output_c)
                      : Status();
  }
  T *h = nullptr, *c = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(t.output_h, hidden, &h));
  TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(t.output_c, cell, &c));
  TF_LSTM_OPS_RETURN_IF_ERROR(CallForward(t, h, c));
  TF_LSTM_OPS_RETURN_IF_ERROR(WriteState(h, hidden, t.input_h, t.output_h));
  return WriteState(c, cell, t.input_c, t.output_c);
}

template <class T>
Status CudnnRnn<T>::CallForward(const MultiLayerForward<T>& t, T* h,
                                T* c) const {
  const T *x = nullptr, *h0 = nullptr, *c0 = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadSequence(t.input, model_.input_size, &x));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ReadState(t.input_h, model_.hidden_size, false, &h0));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ReadState(t.input_c, model_.cell_size, false, &c0));
  T* y = t.output;
  const int64_t width = model_.output_size();
  if (has_empty_rows()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.rows() * width, &y));
  }
  char* workspace = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(static_cast<int64_t>(workspace_bytes_), &workspace));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNForward, handle_, descriptor_.get(),
      t.reserve ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      device_cudnn_lengths_, x_.get(), x, y_.get(), y, h_.get(), h0, h,
      c_.get(), c0, c, weight_bytes_, t.params, workspace_bytes_, workspace,
      t.reserve ? reserve_bytes_ : 0, t.reserve);
  return has_empty_rows() ? Mask(y, width, t.output) : Status();
}

template <class T>
Status CudnnRnn<T>::ComputeBackward(const MultiLayerBackward<T>& t) const {
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  const int64_t rows = model_.pseudo_layers() * rnn_.batch;
  // cuDNN adds to the gradients of the weights.
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Zero(t.params_backprop, rnn_.params.size()));
  if (is_empty()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Copy(t.output_h_backprop, rows * hidden, t.input_h_backprop));
    return t.input_c_backprop ? device_.Copy(t.output_c_backprop, rows * cell,
                                             t.input_c_backprop)
                              : Status();
  }
  T *x_grad = t.input_backprop, *h_grad = nullptr, *c_grad = nullptr;
  if (rnn_.has_padding()) {  // where cuDNN writes undefined values
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(rnn_.rows() * model_.input_size, &x_grad));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      AllocateState(t.input_h_backprop, hidden, &h_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(t.input_c_backprop, cell, &c_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(CallBackward(t, x_grad, h_grad, c_grad));
  if (rnn_.has_padding()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Mask(x_grad, model_.input_size, t.input_backprop));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      WriteState(h_grad, hidden, t.output_h_backprop, t.input_h_backprop));
  return WriteState(c_grad, cell, t.output_c_backprop, t.input_c_backprop);
}

template <class T>
Status CudnnRnn<T>::CallBackward(const MultiLayerBackward<T>& t, T* x_grad,
                                 T* h_grad, T* c_grad) const {
  const int64_t hidden = model_.hidden_size, cell = model_.cell_size;
  const T *x = nullptr, *h0 = nullptr, *c0 = nullptr;
  const T *y_grad = nullptr, *final_h_grad = nullptr, *final_c_grad = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadSequence(t.input, model_.input_size, &x));
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadState(t.input_h, hidden, false, &h0));
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadState(t.input_c, cell, false, &c0));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ReadSequence(t.output_backprop, model_.output_size(), &y_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ReadState(t.output_h_backprop, hidden, has_empty_rows(), &final_h_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ReadState(t.output_c_backprop, cell, has_empty_rows(), &final_c_grad));
  // cuDNN writes to its reserve, which a further backward pass may need.
  const auto bytes = static_cast<int64_t>(reserve_bytes_);
  char *reserve = nullptr, *workspace = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(bytes, &reserve));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Copy(reinterpret_cast<const char*>(t.reserve), bytes, reserve));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(static_cast<int64_t>(workspace_bytes_), &workspace));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNBackwardData_v8, handle_, descriptor_.get(),
      device_cudnn_lengths_, y_.get(), t.output, y_grad, x_.get(), x_grad,
      h_.get(), h0, final_h_grad, h_grad, c_.get(), c0, final_c_grad, c_grad,
      weight_bytes_, t.params, workspace_bytes_, workspace, reserve_bytes_,
      reserve);
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      *cudnn_, cudnnRNNBackwardWeights_v8, handle_, descriptor_.get(),
      CUDNN_WGRAD_MODE_ADD, device_cudnn_lengths_, x_.get(), x, h_.get(), h0,
      y_.get(), t.output, weight_bytes_, t.params_backprop, workspace_bytes_,
      workspace, reserve_bytes_, reserve);
  return Status();
}

template class CudnnRnn<float>;
template class CudnnRnn<double>;
template class CudnnRnn<Half>;

}  // namespace tf_lstm_ops::cuda
