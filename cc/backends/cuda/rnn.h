// One recurrent layer in one direction over one batch of sequences:
// core/layer_direction.h's problem, for tensors in the device's memory. T is their type;
// what is computed in between is float for those of 16 bits. Shapes as there;
// B, T, I, H and P are those of `steps` and `config`.
//
// A projection is for LSTMs without mask and recurrent dropout, in which each
// row takes part in a step at least.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RNN_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RNN_H_

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/rnn_arguments.h"
#include "backends/cuda/tensors.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// What both passes are given.
template <class T>
struct Layer {
  RnnConfig config;
  Steps steps;
  RnnWeights<const T> weights;
  Multipliers<T> input_dropout;      // of x, [., B, I]
  Multipliers<T> recurrent_dropout;  // of the previous h, [., B, H]
  const T* x = nullptr;              // [rows, I] by input row, x_stride apart
  int64_t x_stride = 0;
  States<const T> h0;
  States<const T> c0;  // of an LSTM
};

template <class T>
struct RnnForward : Layer<T> {
  // Added to the pre-activations of step 0, [B, G*H]; null counts as zeros.
  const ComputeType<T>* first = nullptr;
  // Out; null where not wanted. Rows that no step writes are not touched, those
  // of steps without input as `fill` says; a projection makes all of these
  // zero.
  T* h = nullptr;  // [rows, P] by output row
  int64_t h_stride = 0;
  Fill fill = Fill::kNothing;
  // By LstmSaved or GruSaved and output row. A step without input keeps zeros, and
  // the cell state as it is.
  SavedActivations<T> kept;
  T* unprojected_h = nullptr;  // [rows, H], h before a projection
  States<T> final_h;
  States<T> final_c;  // of an LSTM
};

template <class T>
struct RnnBackward : Layer<T> {
  // What the forward pass left. As in core/layer_direction.h, an LSTM's co and h may be
  // null.
  const T* h = nullptr;
  int64_t h_stride = 0;
  SavedActivations<const T> kept;
  const T* unprojected_h = nullptr;
  // Upstream gradients, by output row; null counts as zero.
  const T* h_grad = nullptr;
  int64_t h_grad_stride = 0;
  SavedActivations<const T> grad;
  States<const T> final_h_grad;
  States<const T> final_c_grad;
  // Out; null where not wanted.
  States<T> h0_grad;
  States<T> c0_grad;
  RnnWeights<T> gradients;
  T* dx = nullptr;  // by input row, x_stride apart; zero where no step reads
  bool adds_to_x_grad = false;
  T* dz = nullptr;  // [rows, G*H] by input row, in the weights' order
};

// The rows of a packed reserve, [rows, SavedCount(cell), H] by output row.
template <class T>
SavedActivations<T> PackedActivations(T* data, CellKind cell, int64_t cell_size) {
  const SavedActivations<T> packed = PackedActivations(data, cell, cell_size);
  SavedActivations<T> kept;
  for (int k = 0; data && k < SavedCount(cell); ++k) {
    kept.data[k] = packed.row[k];
    kept.stride[k] = packed.stride[k];
  }
  return kept;
}

template <class T>
Status Forward(const Device& device, const RnnForward<T>& args);
template <class T>
Status Backward(const Device& device, const RnnBackward<T>& args);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RNN_H_
