// The passes of one layer direction on the package's own kernels.
//
// All tensors lie in device memory and have the shapes of
// core/layer_direction.h, `rows` by output row where saved activations are
// concerned. T is float, double, Half or BFloat16; values between products are
// float for 16-bit types. All work is enqueued on the device's stream.
//
// A projection is for LSTMs without mask and recurrent dropout in which every
// row of the batch has a valid step.
//
// Errors: FailedPrecondition where a library of CUDA is missing;
// ResourceExhausted; Unimplemented where a size is too large; Internal.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_H_

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Saved activations in one buffer [rows, SavedCount(cell), H], by output row.
// Null `data` saves nothing.
template <class T>
SavedActivations<T> ActivationsByOutputRow(T* data, CellKind cell,
                                           int64_t cell_size) {
  SavedActivations<T> saved = PackedActivations(data, cell, cell_size);
  saved.packed = false;
  return saved;
}

// Whether the sizes are small enough for these kernels.
inline bool FitsFusedKernels(int64_t batch, int64_t cell_size) {
  return cell_size == 0 || batch <= INT32_MAX / cell_size;
}

// By one of the package's own algorithms; those of all steps in one launch go
// step by step where the layer does not fit them (persistent.h).
template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer,
                      Algorithm algorithm);
template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer,
                       Algorithm algorithm);

// By the fastest of the package's own algorithms (autotune.h).
template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer);
template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_H_
