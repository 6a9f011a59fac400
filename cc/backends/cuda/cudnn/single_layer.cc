#include "backends/cuda/cudnn/single_layer.h"

#include "core/reserve.h"

namespace tf_lstm_ops::cuda {
namespace {

// Element (row, column) is data[row * row_stride + column * column_stride].
template <class T>
struct StridedMatrix {
  T* data;
  int64_t row_stride, column_stride;
};

// to = from, [rows, columns].
template <class T>
Status CopyMatrix(const Device& device, const ParamsLayout::Region& shape,
                  const StridedMatrix<const T>& from,
                  const StridedMatrix<T>& to) {
  return ConvertToCudnn<T>(device,
                           {shape.columns,
                            shape.rows,
                            1,
                            {from.data, from.column_stride, from.row_stride},
                            {to.data, to.column_stride, to.row_stride}});
}

// A gate's block [K, H] of weights as cuDNN's matrix [H, K].
template <class T>
StridedMatrix<T> OfBlock(const GateMatrices<T>& w, int block) {
  return {w.Block(block), w.column_stride, w.row_stride};
}
template <class T>
StridedMatrix<T> OfRegion(T* params, const ParamsLayout::Region& region) {
  return {params + region.offset, region.columns, 1};
}

// Calls f(block, id) for each gate: its block in the layer's weights, its ID in
// cuDNN's.
template <class F>
Status ForEachGate(const RnnConfig& config, const F& f) {
  const GateOrder ids = CudnnGateOrder(config.cell);
  for (int gate = 0; gate < GateCount(config.cell); ++gate) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        f(config.gate_order.block[gate], ids.block[gate]));
  }
  return Status();
}

}  // namespace

template <class T>
bool CudnnSingleLayer<T>::Supports(const LayerDirection<T>& layer) {
  const RnnConfig& config = layer.config;
  const Sequence& sequence = layer.sequence;
  const bool has_cell =
      config.cell == CellKind::kLstm || config.cell == CellKind::kGru;
  return has_cell && sequence.all_valid() && !layer.input_dropout.data &&
         !layer.recurrent_dropout.data && !layer.weights.has_peephole() &&
         config.cell_clip == 0 && sequence.batch > 0 && sequence.time > 0 &&
         config.input_size > 0 && config.cell_size > 0 && HasCudnn();
}

template <class T>
Status CudnnSingleLayer<T>::SetRnn() {
  RnnModel& model = rnn_.model;
  model.cell = layer_.config.cell;
  model.input_size = layer_.config.input_size;
  model.cell_size = model.hidden_size = layer_.config.cell_size;
  rnn_.time_major = true;
  rnn_.time = layer_.sequence.time;
  rnn_.batch = layer_.sequence.batch;
  rnn_.lengths.assign(rnn_.batch, static_cast<int32_t>(rnn_.time));
  rnn_.valid_steps = rnn_.rows();
  return ParamsLayout::Make(model, &rnn_.params);
}

template <class T>
Status CudnnSingleLayer<T>::Begin(bool is_training) {
  TF_LSTM_OPS_RETURN_IF_ERROR(SetRnn());
  multi_layer_ =
      std::make_unique<CudnnMultiLayer<T>>(rnn_, nullptr, algorithm_);
  return multi_layer_->Begin(device_, is_training);
}

template <class T>
template <class Tensors>
Status CudnnSingleLayer<T>::SetInputs(Tensors* t) const {
  const int64_t width = rnn_.model.input_size;
  T *x = nullptr, *params = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.rows() * width, &x));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Transpose(InputRows(layer_.x, width), TimeMajor(x, width), width));
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.params.size(), &params));
  TF_LSTM_OPS_RETURN_IF_ERROR(PackParams(params));
  t->input = x;
  t->input_h = layer_.h0.data;
  t->input_c = layer_.c0.data;
  t->params = params;
  return Status();
}

template <class T>
Status CudnnSingleLayer<T>::ComputeForward(const LayerForward<T>& layer,
                                           T* output, T* reserve) {
  MultiLayerForward<T> t = {};
  TF_LSTM_OPS_RETURN_IF_ERROR(SetInputs(&t));
  t.output_h = layer.final_h.data;
  t.output_c = layer.final_c.data;
  t.reserve = reserve;
  if (reserve) {  // without dropout the header has no meaning
    constexpr int64_t kHeaderBytes = sizeof(ReserveHeader);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Zero(reinterpret_cast<char*>(reserve), kHeaderBytes));
    const int64_t end = h_offset() + h_size();
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Zero(reserve + end, reserve_size() - end));
  }
  if (reserve && !return_sequences_) {
    t.output = reserve + h_offset();
  } else {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(sequence_size(), &t.output));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(multi_layer_->ComputeForward(t));
  if (!return_sequences_) {
    const T* last = t.output + sequence_size() - state_size();
    return device_.Copy(last, state_size(), output);
  }
  const int64_t width = rnn_.model.cell_size;
  return Transpose(TimeMajor<const T>(t.output, width),
                   BatchMajor(output, width), width);
}

template <class T>
Status CudnnSingleLayer<T>::ComputeBackward(const LayerBackward<T>& layer,
                                            const Outputs& outputs,
                                            const T* reserve) {
  MultiLayerBackward<T> t = {};
  TF_LSTM_OPS_RETURN_IF_ERROR(SetInputs(&t));
  t.reserve = reserve;
  TF_LSTM_OPS_RETURN_IF_ERROR(SetH(outputs.output, reserve, &t.output));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      SetHGrad(outputs.output_grad, &t.output_backprop));
  t.output_h_backprop = layer.final_h_grad.data;
  t.output_c_backprop = layer.final_c_grad.data;
  t.input_h_backprop = layer.h0_grad.data;
  t.input_c_backprop = layer.c0_grad.data;
  const int64_t width = rnn_.model.input_size;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(rnn_.rows() * width, &t.input_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(rnn_.params.size(), &t.params_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(multi_layer_->ComputeBackward(t));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Transpose(TimeMajor<const T>(t.input_backprop, width),
                InputRows(layer.x_grad, width), width));
  return UnpackParams(t.params_backprop, layer.weights_grad);
}

template <class T>
Status CudnnSingleLayer<T>::SetH(const T* output, const T* reserve,
                                 const T** h) const {
  if (!return_sequences_) {
    *h = reserve + h_offset();
    return Status();
  }
  const int64_t width = rnn_.model.cell_size;
  T* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(sequence_size(), &to));
  *h = to;
  return Transpose(BatchMajor(output, width), TimeMajor(to, width), width);
}

template <class T>
Status CudnnSingleLayer<T>::SetHGrad(const T* output_grad,
                                     const T** h_grad) const {
  T* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(sequence_size(), &to));
  *h_grad = to;
  const int64_t width = rnn_.model.cell_size;
  if (return_sequences_) {
    return Transpose(BatchMajor(output_grad, width), TimeMajor(to, width),
                     width);
  }
  const int64_t before_last = sequence_size() - state_size();
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(to, before_last));
  return device_.Copy(output_grad, state_size(), to + before_last);
}

template <class T>
Status CudnnSingleLayer<T>::PackParams(T* params) const {
  const ParamsLayout& layout = rnn_.params;
  const RnnWeights<const T>& from = layer_.weights;
  const int64_t cell = rnn_.model.cell_size;
  const int gates = rnn_.model.gates();
  return ForEachGate(layer_.config, [&](int block, int id) {
    const auto matrix = [&](const GateMatrices<const T>& w, int number) {
      const ParamsLayout::Region region = layout.Matrix(0, number);
      return CopyMatrix<T>(device_, region, OfBlock(w, block),
                           OfRegion(params, region));
    };
    const auto bias = [&](const T* b, int number) {
      T* const to = params + layout.Bias(0, number).offset;
      return b ? device_.Copy(b + block * cell, cell, to)
               : device_.Zero(to, cell);
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix(from.input, id));
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix(from.recurrent, gates + id));
    TF_LSTM_OPS_RETURN_IF_ERROR(bias(from.input_bias, id));
    return bias(from.recurrent_bias, gates + id);
  });
}

template <class T>
Status CudnnSingleLayer<T>::UnpackParams(const T* params,
                                         const RnnWeights<T>& to) const {
  const ParamsLayout& layout = rnn_.params;
  const int64_t cell = rnn_.model.cell_size;
  const int gates = rnn_.model.gates();
  return ForEachGate(layer_.config, [&](int block, int id) {
    const auto matrix = [&](int number, const GateMatrices<T>& w) {
      const ParamsLayout::Region region = layout.Matrix(0, number);
      return CopyMatrix<T>(device_, region, OfRegion(params, region),
                           OfBlock(w, block));
    };
    const auto bias = [&](int number, T* b) {
      const T* const from = params + layout.Bias(0, number).offset;
      return b ? device_.Copy(from, cell, b + block * cell) : Status();
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix(id, to.input));
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix(gates + id, to.recurrent));
    TF_LSTM_OPS_RETURN_IF_ERROR(bias(id, to.input_bias));
    return bias(gates + id, to.recurrent_bias);
  });
}

template <class T>
template <class E>
BatchRows<E> CudnnSingleLayer<T>::InputRows(E* data, int64_t width) const {
  if (!layer_.sequence.reversed) return BatchMajor(data, width);
  const int64_t row = rnn_.time * width;
  return {data + row - width, -width, row};
}

template <class T>
Status CudnnSingleLayer<T>::Transpose(const BatchRows<const T>& from,
                                      const BatchRows<T>& to,
                                      int64_t width) const {
  return ConvertToCudnn<T>(device_, {rnn_.time, rnn_.batch, width, from, to});
}

template class CudnnSingleLayer<float>;
template class CudnnSingleLayer<double>;
template class CudnnSingleLayer<Half>;

}  // namespace tf_lstm_ops::cuda
