// The passes of one layer direction on the package's own kernels.
//
// All tensors lie in device memory, belong to the caller, and have the shapes
// of core/layer_direction.h. Saved activations have one row for each output
// row. T is float, double, Half or BFloat16; values between products are float
// for 16-bit types. All work is enqueued on the device's stream. The equations
// are those of core/*_cell.h.
//
// A layer may have a projection only if it is an LSTM without mask and
// recurrent dropout, and every row of the batch has a valid step.
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

// Whether the sizes are small enough for these kernels, which count the
// elements of [B, H] in 32 bits.
inline bool FitsFusedKernels(int64_t batch, int64_t cell_size) {
  return cell_size == 0 || batch <= INT32_MAX / cell_size;
}

// Computes a pass by one of the package's own algorithms. kFusedGrid and
// kFusedClusters run step by step where FindLaunchConfig finds no configuration
// (persistent.h).
template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer,
                      Algorithm algorithm);
template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer,
                       Algorithm algorithm);

// Computes a pass by the fastest of the package's own algorithms (autotune.h).
// May wait for the device.
template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer);
template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_LAYER_H_
