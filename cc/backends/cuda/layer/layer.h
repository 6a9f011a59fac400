// The passes of one layer direction: cuBLAS for products, and one kernel for
// the equations of a step.
//
// All tensors lie in device memory, belong to the caller, and have the shapes
// of core/layer_direction.h. Saved activations have one row for each output
// row. T is float, double, Half or BFloat16; values between products are float
// for 16-bit types. All work is enqueued on the device's stream. The equations
// are those of core/*_cell.h. A repeated call gives the same bits.
//
// Errors: FailedPrecondition where a library of CUDA is missing;
// ResourceExhausted; Unimplemented for a projection, input dropout, multipliers
// of recurrent dropout that differ from gate to gate, a cell other than
// LstmCell and CustomLstmCell, and where a size is too large; Internal.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_LAYER_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_LAYER_LAYER_H_

#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Saved activations in one buffer [rows, SavedCount(cell), H], by output row.
// Null `data` saves nothing.
template <class T>
SavedActivations<T> ActivationsByOutputRow(T* data, CellKind cell,
                                           int64_t cell_size) {
  auto saved = ActivationsByPackedRow<T>(data, cell, cell_size);
  saved.by_packed_row = false;
  return saved;
}

template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer);

template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_LAYER_LAYER_H_
