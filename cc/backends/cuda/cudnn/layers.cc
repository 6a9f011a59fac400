#include "backends/cuda/cudnn/layers.h"

#include <map>
#include <mutex>
#include <tuple>

namespace tf_lstm_ops::cuda {
namespace {

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

int ElementSize(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_HALF ? 2 : 4;
}

// Whether cuDNN compiles the algorithm for a batch size.
bool IsCompiled(const CudnnOptions& options) {
  return options.algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
}

}  // namespace

Status CudnnLayers::Find(const Cudnn& cudnn, const Device& device,
                         const RnnModel& m, const CudnnOptions& o,
                         const LayerRange& range,
                         std::shared_ptr<const CudnnLayers>* layers) {
  const auto key = std::make_tuple(
      &device.handles(), m.cell, m.layers, m.directions, m.input_size,
      m.cell_size, m.hidden_size, m.skip_input, o.type, o.math, o.algorithm,
      o.is_padded, IsCompiled(o) ? o.rows : 0, range.first, range.count);
  static std::mutex mutex;
  static auto* const kept =
      new std::map<decltype(key), std::shared_ptr<const CudnnLayers>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const CudnnLayers>& found = (*kept)[key];
  if (!found) {
    cudnnHandle_t handle = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(CudnnHandle(cudnn, device, &handle));
    const auto made = std::make_shared<CudnnLayers>();
    TF_LSTM_OPS_RETURN_IF_ERROR(made->Make(cudnn, handle, m, o, range));
    found = made;
  }
  *layers = found;
  return Status();
}

Status CudnnLayers::Make(const Cudnn& cudnn, cudnnHandle_t handle,
                         const RnnModel& model, const CudnnOptions& options,
                         const LayerRange& range) {
  input_size_ = model.InputSize(range.first);
  TF_LSTM_OPS_RETURN_IF_ERROR(dropout_.Make(cudnn));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnSetDropoutDescriptor,
                                    dropout_.get(), handle, 0, nullptr, 0, 0);
  TF_LSTM_OPS_RETURN_IF_ERROR(rnn_.Make(cudnn));
  const bool skips_input = range.first == 0 && model.skip_input;
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      cudnn, cudnnSetRNNDescriptor_v8, rnn_.get(), options.algorithm,
      Mode(model.cell), CUDNN_RNN_DOUBLE_BIAS,
      model.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
      skips_input ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, options.type,
      options.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      options.math, static_cast<int32_t>(input_size_),
      static_cast<int32_t>(model.cell_size),
      static_cast<int32_t>(model.hidden_size),
      static_cast<int32_t>(range.count), dropout_.get(),
      options.is_padded ? CUDNN_RNN_PADDED_IO_ENABLED
                        : CUDNN_RNN_PADDED_IO_DISABLED);
  if (IsCompiled(options)) {
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnBuildRNNDynamic, handle,
                                      rnn_.get(),
                                      static_cast<int>(options.rows));
  }
  ParamsLayout layout;
  TF_LSTM_OPS_RETURN_IF_ERROR(ParamsLayout::Make(model, &layout));
  return CudnnWeights::Make(
      {cudnn, handle, rnn_.get(), ElementSize(options.type)}, layout,
      range.first * model.directions, range.count * model.directions,
      &weights_);
}

}  // namespace tf_lstm_ops::cuda
