// Pass: what the forward and the backward pass of a layer direction share.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PASS_H_

#include <string>

#include "backends/cuda/kernels/step_arguments.h"
#include "backends/cuda/layer/products.h"
#include "backends/cuda/layer/tensors.h"
#include "backends/cuda/runtime/programs.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// The sizes of a layer direction. Device and layer must outlive the object.
template <class T>
struct Pass {
  static constexpr int kGates = 4;

  Pass(const Device& d, const LayerDirection<T>& l)
      : device(d),
        layer(l),
        rows(l.sequence.rows()),
        batch(l.sequence.batch),
        units(l.config.cell_size),
        width(kGates * units) {}

  // Whether x and z_grad have rows that no step reads or writes.
  bool has_unread_rows() const { return rows > batch * layer.sequence.steps; }

  const Device& device;
  const LayerDirection<T>& layer;
  const int64_t rows, batch;
  const int64_t units;  // H
  const int64_t width;  // of the pre-activations, 4H
};

// Whether the kernels can compute a layer. Errors: Unimplemented.
template <class T>
Status CheckSupport(const LayerDirection<T>& layer) {
  const RnnConfig& config = layer.config;
  const bool has_cell =
      config.cell == CellKind::kLstm || config.cell == CellKind::kCustomLstm;
  if (!has_cell || config.projected() || layer.input_dropout.data ||
      (layer.recurrent_dropout.data && layer.recurrent_dropout.gate_stride)) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: CUDA's kernels have no projection, no "
                      "dropout multipliers of each gate and no such cell");
  }
  // The kernels count the elements of [B, H] in 32 bits.
  const int64_t batch = layer.sequence.batch;
  if (config.cell_size == 0 || batch <= INT32_MAX / config.cell_size) {
    return Status();
  }
  return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: a state of ", batch,
                    " x ", config.cell_size,
                    " is too large for CUDA's kernels");
}

// Sets `function` to a kernel of steps.cu. Errors: those of FindKernel.
template <class T>
Status FindStepKernel(const Pass<T>& pass, const char* kernel,
                      CUfunction* function) {
  const char* cell =
      pass.layer.config.cell == CellKind::kLstm ? "LstmCell" : "CustomLstmCell";
  return FindKernel(pass.device,
                    {"kernels/steps.cu",
                     {std::string("TF_LSTM_OPS_CELL=") + cell, TypeMacro<T>()}},
                    kernel, function);
}

// Launches a kernel of steps.cu.
template <class T, class Arguments>
Status LaunchStep(const Pass<T>& pass, const char* kernel,
                  const Arguments& arguments) {
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindStepKernel(pass, kernel, &function));
  return pass.device.Launch(function, pass.batch * pass.units, arguments);
}

// The parameters of the cell.
template <class T>
CellArguments<T, ComputeType<T>> CellOf(const Pass<T>& pass) {
  const LayerDirection<T>& layer = pass.layer;
  CellArguments<T, ComputeType<T>> cell;
  cell.cell_size = pass.units;
  for (int gate = 0; gate < pass.kGates; ++gate) {
    cell.block[gate] = layer.config.gate_order.block[gate];
    cell.peephole[gate] = layer.weights.peephole[gate];
  }
  cell.has_peephole = layer.weights.has_peephole();
  cell.clip = static_cast<ComputeType<T>>(layer.config.cell_clip);
  cell.options = layer.config.options;
  return cell;
}

// The weights of all gates as one matrix [K, 4H], in the order of the weights'
// blocks.
template <class T, class E>
Matrix<E> AllGates(const Pass<T>& pass, const GateMatrices<E>& w, int64_t k) {
  return {w.data, k, pass.width, w.row_stride, w.column_stride};
}

// Sets `to` to a copy of a state [B, H] in the type of the computation. The
// copy belongs to the call.
template <class T>
Status Widen(const Pass<T>& pass, const States<const T>& from,
             ComputeType<T>** to) {
  const int64_t units = pass.units;
  TF_LSTM_OPS_RETURN_IF_ERROR(pass.device.Allocate(pass.batch * units, to));
  return Copy(pass.device,
              CopyRows<T, ComputeType<T>>{pass.batch, units, from.data,
                                          from.stride, *to, units});
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_LAYER_PASS_H_
