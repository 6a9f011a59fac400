// Backwards in time, each step is one kernel and one product with the recurrent
// weights. The gradients of inputs and weights follow as products and sums over
// all steps.
#include "backends/cuda/layer/layer.h"
#include "backends/cuda/layer/pass.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
using Step = BackwardStep<T, ComputeType<T>>;

// [rows, width], zero where no step writes.
template <class T>
Status AllocateRows(const Pass<T>& pass, int64_t width, T** data) {
  TF_LSTM_OPS_RETURN_IF_ERROR(pass.device.Allocate(pass.rows * width, data));
  return pass.has_unread_rows() ? pass.device.Zero(*data, pass.rows * width)
                                : Status();
}

template <class T>
Status ComputePreviousH(const Pass<T>& pass, const LayerBackward<T>& layer,
                        const T** previous_h) {
  PreviousH<T, ComputeType<T>> a;
  a.cell = CellOf(pass);
  a.sequence = layer.sequence;
  a.h0 = layer.h0;
  a.h = layer.h;
  a.h_stride = layer.h_stride;
  a.saved = layer.saved;
  TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(pass, pass.units, &a.previous_h));
  *previous_h = a.previous_h;
  return LaunchStep(pass, "previous_h", a);
}

template <class T>
Status SetArguments(const Pass<T>& pass, const LayerBackward<T>& layer,
                    Step<T>* step) {
  step->cell = CellOf(pass);
  step->sequence = layer.sequence;
  step->c0 = layer.c0;
  step->saved = layer.saved;
  step->h_grad = layer.h_grad;
  step->h_grad_stride = layer.h_grad_stride;
  step->saved_grad = layer.saved_grad;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Widen(pass, layer.final_h_grad, &step->next_h_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Widen(pass, layer.final_c_grad, &step->next_c_grad));
  step->z_grad = layer.z_grad;
  return step->z_grad ? Status()
                      : AllocateRows(pass, pass.width, &step->z_grad);
}

// next_h_grad += the gradient through the recurrent weights. `dropped` [B, H]
// is memory for the gradient of h after dropout; null without dropout.
template <class T>
Status AddRecurrentGrad(const Pass<T>& pass, const Step<T>& step,
                        ComputeType<T>* dropped) {
  const int64_t units = pass.units;
  const Matrix<const T> z = {step.step_z_grad, pass.batch, pass.width,
                             pass.width};
  const auto w = AllGates(pass, pass.layer.weights.recurrent, units);
  const Matrix<ComputeType<T>> to = {dropped ? dropped : step.next_h_grad,
                                     pass.batch, units, units};
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Multiply(pass.device, z, w.Transposed(), dropped == nullptr, to));
  if (!dropped) return Status();
  DropWide<T> a;
  a.rows = pass.batch;
  a.width = a.from_stride = units;
  a.by_batch = a.adds = true;
  a.from = dropped;
  a.dropout = pass.layer.recurrent_dropout;
  a.to = step.next_h_grad;
  return ComputeDropRows(pass.device, a);
}

template <class T>
Status RunSteps(const Pass<T>& pass, bool wants_h0_grad, Step<T>* step) {
  const int64_t size = pass.batch * pass.units;
  if (size == 0) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(
      pass.device.Allocate(pass.batch * pass.width, &step->step_z_grad));
  ComputeType<T>* dropped = nullptr;
  if (pass.layer.recurrent_dropout.data) {
    TF_LSTM_OPS_RETURN_IF_ERROR(pass.device.Allocate(size, &dropped));
  }
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindStepKernel(pass, "backward_step", &function));
  for (int64_t s = step->sequence.steps - 1; s >= 0; --s) {
    step->step = s;
    TF_LSTM_OPS_RETURN_IF_ERROR(pass.device.Launch(function, size, *step));
    if (s == 0 && !wants_h0_grad) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(AddRecurrentGrad(pass, *step, dropped));
  }
  return Status();
}

template <class T>
Status Narrow(const Pass<T>& pass, const ComputeType<T>* from,
              const States<T>& to) {
  if (!to.data) return Status();
  return Copy(pass.device,
              CopyRows<ComputeType<T>, T>{pass.batch, pass.units, from,
                                          pass.units, to.data, to.stride});
}

template <class T>
Status BiasGrad(const Pass<T>& pass, const T* z_grad, T* to) {
  if (!to) return Status();
  return Sum(pass.device, z_grad, {pass.rows, pass.width, pass.width}, to);
}

// to = inputs^T z_grad. Without dropout, `inputs` is read itself unless rows
// that no step reads may hold NaN, whose product with a z_grad of zero is NaN.
template <class T>
Status MatrixGrad(const Pass<T>& pass, Matrix<const T> inputs,
                  const Multipliers<T>& dropout, bool may_hold_nan,
                  const T* z_grad, const GateMatrices<T>& to) {
  if (!to) return Status();
  if (dropout.data || may_hold_nan) {
    DropNarrow<T> a;
    a.sequence = pass.layer.sequence;
    a.rows = inputs.rows;
    a.width = inputs.columns;
    a.from = inputs.data;
    a.from_stride = inputs.row_stride;
    a.dropout = dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(pass.device.Allocate(a.rows * a.width, &a.to));
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeDropRows(pass.device, a));
    inputs = {a.to, a.rows, a.width, a.width};
  }
  const Matrix<const T> z = {z_grad, pass.rows, pass.width, pass.width};
  return Multiply(pass.device, inputs.Transposed(), z, false,
                  AllGates(pass, to, inputs.columns));
}

template <class T>
Status PeepholeGrads(const Pass<T>& pass, const LayerBackward<T>& layer,
                     const T* z_grad) {
  if (!layer.weights.has_peephole()) return Status();
  PeepholeSums<T, ComputeType<T>> a;
  a.cell = CellOf(pass);
  a.sequence = layer.sequence;
  a.c0 = layer.c0;
  a.saved = layer.saved;
  a.z_grad = z_grad;
  const int64_t stride = kMaxPreActivations * pass.units;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      pass.device.Allocate(pass.batch * stride, &a.sums));
  TF_LSTM_OPS_RETURN_IF_ERROR(LaunchStep(pass, "peephole_sums", a));
  for (int gate = 0; gate < kMaxPreActivations; ++gate) {
    T* to = layer.weights_grad.peephole[gate];
    if (!to) continue;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        SumPartial<T>(pass.device, a.sums + gate * pass.units,
                      {pass.batch, pass.units, stride}, to));
  }
  return Status();
}

template <class T>
Status XGrad(const Pass<T>& pass, const LayerBackward<T>& layer,
             const T* z_grad) {
  if (!layer.x_grad) return Status();
  if (!layer.weights.input) {
    return ComputeAddedInputGrad<T>(
        pass.device,
        {pass.rows, pass.kGates, pass.units, layer.config.x_gate_stride, z_grad,
         layer.x_grad, layer.x_stride, layer.adds_to_x_grad});
  }
  const int64_t input = layer.config.input_size;
  const Matrix<const T> z = {z_grad, pass.rows, pass.width, pass.width};
  const Matrix<T> to = {layer.x_grad, pass.rows, input, layer.x_stride};
  return Multiply(pass.device, z,
                  AllGates(pass, layer.weights.input, input).Transposed(),
                  layer.adds_to_x_grad, to);
}

template <class T>
Status RecurrentGrad(const Pass<T>& pass, const LayerBackward<T>& layer,
                     const T* z_grad) {
  if (!layer.weights_grad.recurrent) return Status();
  const T* previous_h = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(ComputePreviousH(pass, layer, &previous_h));
  const Matrix<const T> h = {previous_h, pass.rows, pass.units, pass.units};
  return MatrixGrad(pass, h, layer.recurrent_dropout, false, z_grad,
                    layer.weights_grad.recurrent);
}

// Writes those tensors of layer.weights_grad and layer.x_grad that are not
// null. z_grad, [rows, 4H] by input row, is zero in rows that no valid step
// reads.
template <class T>
Status ComputeInputAndWeightGrads(const Pass<T>& pass,
                                  const LayerBackward<T>& layer,
                                  const T* z_grad) {
  const RnnWeights<T>& wanted = layer.weights_grad;
  TF_LSTM_OPS_RETURN_IF_ERROR(BiasGrad(pass, z_grad, wanted.input_bias));
  const bool has_padding =
      !layer.sequence.all_valid() || pass.has_unread_rows();
  const Matrix<const T> x = {layer.x, pass.rows, layer.config.input_size,
                             layer.x_stride};
  TF_LSTM_OPS_RETURN_IF_ERROR(
      MatrixGrad(pass, x, {}, has_padding, z_grad, wanted.input));
  TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentGrad(pass, layer, z_grad));
  TF_LSTM_OPS_RETURN_IF_ERROR(PeepholeGrads(pass, layer, z_grad));
  return XGrad(pass, layer, z_grad);
}

}  // namespace

template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSupport(layer));
  const Pass<T> pass(device, layer);
  Step<T> step;
  TF_LSTM_OPS_RETURN_IF_ERROR(SetArguments(pass, layer, &step));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      RunSteps(pass, layer.h0_grad.data != nullptr, &step));
  TF_LSTM_OPS_RETURN_IF_ERROR(ComputeInputAndWeightGrads(
      pass, layer, static_cast<const T*>(step.z_grad)));
  TF_LSTM_OPS_RETURN_IF_ERROR(Narrow(pass, step.next_h_grad, layer.h0_grad));
  return Narrow(pass, step.next_c_grad, layer.c0_grad);
}

template Status ComputeBackward(const Device&, const LayerBackward<float>&);
template Status ComputeBackward(const Device&, const LayerBackward<double>&);
template Status ComputeBackward(const Device&, const LayerBackward<Half>&);
template Status ComputeBackward(const Device&, const LayerBackward<BFloat16>&);

}  // namespace tf_lstm_ops::cuda
