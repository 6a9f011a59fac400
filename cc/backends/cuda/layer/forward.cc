// The products of all inputs with the input weights are computed at once. Then
// each step is one product of h with the recurrent weights and one kernel.
#include "backends/cuda/layer/layer.h"
#include "backends/cuda/layer/pass.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
using Step = ForwardStep<T, ComputeType<T>>;

template <class T>
Status CopyState(const Pass<T>& pass, const States<const T>& from,
                 const States<T>& to) {
  return Copy(pass.device, CopyRows<T, T>{pass.batch, pass.units, from.data,
                                          from.stride, to.data, to.stride});
}

// The products of all inputs with the input weights, or x itself.
template <class T>
Status SetInput(const Pass<T>& pass, Step<T>* step) {
  const LayerDirection<T>& layer = pass.layer;
  if (!layer.weights.input) {
    step->x = layer.x;
    step->x_stride = layer.x_stride;
    step->x_gate_stride = layer.config.x_gate_stride;
    return Status();
  }
  ComputeType<T>* product = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      pass.device.Allocate(pass.rows * pass.width, &product));
  step->input_product = product;
  const int64_t input = layer.config.input_size;
  const Matrix<const T> x = {layer.x, pass.rows, input, layer.x_stride};
  const Matrix<ComputeType<T>> to = {product, pass.rows, pass.width,
                                     pass.width};
  return Multiply(pass.device, x, AllGates(pass, layer.weights.input, input),
                  false, to);
}

// Sets the states, and `h` to what the recurrent products read: final_h, which
// a step updates, or its product with the dropout multipliers.
template <class T>
Status SetStates(const Pass<T>& pass, const LayerForward<T>& layer,
                 Step<T>* step, Matrix<const T>* h) {
  step->final_h = layer.final_h;
  if (!step->final_h.data) {
    step->final_h.stride = pass.units;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        pass.device.Allocate(pass.batch * pass.units, &step->final_h.data));
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(CopyState(pass, layer.h0, step->final_h));
  TF_LSTM_OPS_RETURN_IF_ERROR(Widen(pass, layer.c0, &step->c));
  if (layer.final_c.data) {
    step->final_c = layer.final_c;
    TF_LSTM_OPS_RETURN_IF_ERROR(CopyState(pass, layer.c0, layer.final_c));
  }
  *h = {step->final_h.data, pass.batch, pass.units, step->final_h.stride};
  if (!layer.recurrent_dropout.data) return Status();
  DropNarrow<T> a;
  a.rows = pass.batch;
  a.width = pass.units;
  a.by_batch = true;
  a.from = layer.h0.data;
  a.from_stride = layer.h0.stride;
  a.dropout = step->dropout = layer.recurrent_dropout;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      pass.device.Allocate(pass.batch * pass.units, &a.to));
  step->dropped_h = a.to;
  *h = {a.to, pass.batch, pass.units, pass.units};
  return ComputeDropRows(pass.device, a);
}

template <class T>
Status RunSteps(const Pass<T>& pass, const Matrix<const T>& h, Step<T>* step) {
  ComputeType<T>* product = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      pass.device.Allocate(pass.batch * pass.width, &product));
  step->recurrent_product = product;
  const auto w = AllGates(pass, pass.layer.weights.recurrent, pass.units);
  const Matrix<ComputeType<T>> to = {product, pass.batch, pass.width,
                                     pass.width};
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindStepKernel(pass, "forward_step", &function));
  for (step->step = 0; step->step < step->sequence.steps; ++step->step) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Multiply(pass.device, h, w, false, to));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        pass.device.Launch(function, pass.batch * pass.units, *step));
  }
  return Status();
}

}  // namespace

template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSupport(layer));
  const Pass<T> pass(device, layer);
  Step<T> step;
  step.cell = CellOf(pass);
  step.sequence = layer.sequence;
  step.forget_bias = static_cast<ComputeType<T>>(layer.config.forget_bias);
  step.bias = layer.weights.input_bias;
  step.h = layer.h;
  step.h_stride = layer.h_stride;
  step.fill = layer.fill;
  step.saved = layer.saved;
  Matrix<const T> h;
  TF_LSTM_OPS_RETURN_IF_ERROR(SetInput(pass, &step));
  TF_LSTM_OPS_RETURN_IF_ERROR(SetStates(pass, layer, &step, &h));
  return pass.batch * pass.units == 0 ? Status() : RunSteps(pass, h, &step);
}

template Status ComputeForward(const Device&, const LayerForward<float>&);
template Status ComputeForward(const Device&, const LayerForward<double>&);
template Status ComputeForward(const Device&, const LayerForward<Half>&);
template Status ComputeForward(const Device&, const LayerForward<BFloat16>&);

}  // namespace tf_lstm_ops::cuda
