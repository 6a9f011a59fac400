#include "backends/cuda/cudnn/single_layer.h"

#include "backends/cuda/cudnn/sequences.h"
#include "backends/cuda/multi_layer/choice.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cuda {
namespace {

// A matrix's element (row, column) is at data[row * row_stride + column *
// column_stride].
template <class T>
struct Strided {
  T* data;
  int64_t row_stride, column_stride;
};

// to = from, [rows, columns].
template <class T>
Status CopyMatrix(const Device& device, int64_t rows, int64_t columns,
                  const Strided<const T>& from, const Strided<T>& to) {
  return MoveIn<T>(device, {columns,
                            rows,
                            1,
                            {from.data, from.column_stride, from.row_stride},
                            {to.data, to.column_stride, to.row_stride}});
}

// Calls f(block, id) for each gate: its block in Keras' weights, its number in
// cuDNN's.
template <class F>
Status ForEachGate(const RnnConfig& config, const F& f) {
  const GateOrder ids = CudnnGateOrder(config.cell);
  for (int part = 0; part < GateCount(config.cell); ++part) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        f(config.gate_order.block[part], ids.block[part]));
  }
  return Status();
}

}  // namespace

template <class T>
bool CudnnKeras<T>::Serves(const LayerDirection<T>& layer) {
  const RnnConfig& config = layer.config;
  const Sequence& sequence = layer.sequence;
  return sequence.all_valid() && !layer.input_dropout.data &&
         !layer.recurrent_dropout.data && !layer.weights.has_peephole() &&
         config.cell_clip == 0 && sequence.batch > 0 && sequence.time > 0 &&
         config.input_size > 0 && config.cell_size > 0 && HasCudnn();
}

template <class T>
Status CudnnKeras<T>::MakeProblem() {
  RnnModel& model = problem_.model;
  model.cell = layer_.config.cell;
  model.input_size = layer_.config.input_size;
  model.cell_size = model.hidden_size = layer_.config.cell_size;
  problem_.time_major = true;
  problem_.time = layer_.sequence.time;
  problem_.batch = layer_.sequence.batch;
  problem_.lengths.assign(problem_.batch, problem_.time);
  problem_.valid_steps = problem_.batch * problem_.time;
  return ParamsLayout::Make(model, &problem_.params);
}

template <class T>
Status CudnnKeras<T>::BeginForward(bool training, bool return_sequences) {
  TF_LSTM_OPS_RETURN_IF_ERROR(PutTogether(return_sequences));
  MultiLayerForward<T> inputs = {};
  SetInputs(&inputs);
  Way way;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ChooseWay(device_, problem_, nullptr, training, inputs, &way));
  stack_ = Stack<T>::Make(problem_, nullptr, way);
  return stack_->Begin(device_, training);
}

template <class T>
Status CudnnKeras<T>::BeginBackward(bool return_sequences) {
  TF_LSTM_OPS_RETURN_IF_ERROR(PutTogether(return_sequences));
  stack_ = Stack<T>::Make(problem_, nullptr,
                          ChosenWay<T>(device_, problem_, nullptr));
  return stack_->Begin(device_, true);
}

template <class T>
Status CudnnKeras<T>::PutTogether(bool return_sequences) {
  return_sequences_ = return_sequences;
  TF_LSTM_OPS_RETURN_IF_ERROR(MakeProblem());
  const int64_t width = problem_.model.input_size;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(problem_.valid_steps * width, &x_));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Transpose(OfLayer(layer_.x, width, true), TimeMajor(x_, width), width));
  return PackParams();
}

template <class T>
template <class Tensors>
void CudnnKeras<T>::SetInputs(Tensors* t) const {
  t->input = x_;
  t->input_h = layer_.h0.data;
  t->input_c = layer_.c0.data;
  t->params = params_;
}

template <class T>
int64_t CudnnKeras<T>::reserve_size() const {
  return stack_->reserve_size() + (return_sequences_ ? 0 : StepsSize());
}

template <class T>
Status CudnnKeras<T>::Forward(const LayerForward<T>& args, T* output,
                              T* reserve) {
  MultiLayerForward<T> t = {};
  SetInputs(&t);
  t.output_h = args.final_h.data;
  t.output_c = args.final_c.data;
  t.reserve = reserve;
  if (reserve) {  // the stack's header, which says nothing here
    constexpr int64_t kBytes = sizeof(ReserveHeader);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Zero(reinterpret_cast<char*>(reserve), kBytes));
  }
  if (reserve && !return_sequences_) {
    t.output = reserve + stack_->reserve_size();
  } else {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(StepsSize(), &t.output));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(stack_->Forward(t));
  const int64_t width = problem_.model.cell_size;
  if (!return_sequences_) {
    return device_.Copy(t.output + StepsSize() - StepSize(), StepSize(),
                        output);
  }
  return Transpose(TimeMajor<const T>(t.output, width),
                   OfLayer(output, width, false), width);
}

template <class T>
Status CudnnKeras<T>::Backward(const LayerBackward<T>& args, const T* output,
                               const T* output_grad, const T* reserve) {
  MultiLayerBackward<T> t = {};
  SetInputs(&t);
  t.reserve = reserve;
  TF_LSTM_OPS_RETURN_IF_ERROR(Outputs(output, reserve, &t.output));
  TF_LSTM_OPS_RETURN_IF_ERROR(OutputGradients(output_grad, &t.output_backprop));
  t.output_h_backprop = args.final_h_grad.data;
  t.output_c_backprop = args.final_c_grad.data;
  t.input_h_backprop = args.h0_grad.data;
  t.input_c_backprop = args.c0_grad.data;
  const int64_t width = problem_.model.input_size;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(problem_.valid_steps * width, &t.input_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device_.Allocate(problem_.params.size(), &t.params_backprop));
  TF_LSTM_OPS_RETURN_IF_ERROR(stack_->Backward(t));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Transpose(TimeMajor<const T>(t.input_backprop, width),
                OfLayer(args.x_grad, width, true), width));
  return UnpackParams(t.params_backprop, args.weights_grad);
}

// h of all steps, as they were processed.
template <class T>
Status CudnnKeras<T>::Outputs(const T* output, const T* reserve,
                              const T** steps) const {
  if (!return_sequences_) {
    *steps = reserve + stack_->reserve_size();
    return Status();
  }
  const int64_t width = problem_.model.cell_size;
  T* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(StepsSize(), &to));
  *steps = to;
  return Transpose(OfLayer(output, width, false), TimeMajor(to, width), width);
}

template <class T>
Status CudnnKeras<T>::OutputGradients(const T* output_grad,
                                      const T** steps) const {
  T* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(StepsSize(), &to));
  *steps = to;
  const int64_t width = problem_.model.cell_size;
  if (return_sequences_) {
    return Transpose(OfLayer(output_grad, width, false), TimeMajor(to, width),
                     width);
  }
  const int64_t before = StepsSize() - StepSize();
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(to, before));
  return device_.Copy(output_grad, StepSize(), to + before);
}

// Keras' [K,G*H] and cuDNN's [H,K] for each gate.
template <class T>
Status CudnnKeras<T>::PackParams() {
  const ParamsLayout& layout = problem_.params;
  const RnnWeights<const T>& from = layer_.weights;
  const int64_t cell = problem_.model.cell_size;
  const int gates = problem_.model.gates();
  TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(layout.size(), &params_));
  return ForEachGate(layer_.config, [&](int block, int id) {
    const auto matrix = [&](const GateMatrices<const T>& w, int number) {
      const ParamsLayout::Region to = layout.Matrix(0, number);
      return CopyMatrix<T>(device_, to.columns, to.rows,
                           {w.Block(block), w.row_stride, w.column_stride},
                           {params_ + to.offset, 1, to.columns});
    };
    const auto bias = [&](const T* b, int number) {
      T* const to = params_ + layout.Bias(0, number).offset;
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
Status CudnnKeras<T>::UnpackParams(const T* params,
                                   const RnnWeights<T>& to) const {
  const ParamsLayout& layout = problem_.params;
  const int64_t cell = problem_.model.cell_size;
  const int gates = problem_.model.gates();
  return ForEachGate(layer_.config, [&](int block, int id) {
    const auto matrix = [&](int number, const GateMatrices<T>& w) {
      const ParamsLayout::Region from = layout.Matrix(0, number);
      return CopyMatrix<T>(device_, from.columns, from.rows,
                           {params + from.offset, 1, from.columns},
                           {w.Block(block), w.row_stride, w.column_stride});
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
BatchRows<E> CudnnKeras<T>::TimeMajor(E* data, int64_t width) const {
  return {data, problem_.batch * width, width};
}

template <class T>
template <class E>
BatchRows<E> CudnnKeras<T>::OfLayer(E* data, int64_t width,
                                    bool is_input) const {
  const int64_t row = problem_.time * width;
  if (!is_input || !layer_.sequence.reversed) return {data, width, row};
  return {data + row - width, -width, row};
}

template <class T>
Status CudnnKeras<T>::Transpose(const BatchRows<const T>& from,
                                const BatchRows<T>& to, int64_t width) const {
  return MoveIn<T>(device_, {problem_.time, problem_.batch, width, from, to});
}

template class CudnnKeras<float>;
template class CudnnKeras<double>;
template class CudnnKeras<Half>;

}  // namespace tf_lstm_ops::cuda
