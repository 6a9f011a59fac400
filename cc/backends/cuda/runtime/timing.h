// Timing of work on the device, and whether it is allowed.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_

#include <functional>

#include "backends/cuda/runtime/device.h"

namespace tf_lstm_ops::cuda {

// Whether algorithms may be timed: not with TF_CUDNN_USE_AUTOTUNE=0, nor where
// TensorFlow is told to be deterministic.
bool AllowsTiming();
// Sets `capturing` to whether the device's stream is being captured into a CUDA
// graph. During the capture nothing may wait for the device. Errors: Internal.
Status IsCapturing(const Device& device, bool* capturing);

// Calls `run` twice and sets the shorter time, because the first call may also
// load libraries or compile kernels. The memory that `run` allocates in the
// first call is freed. Waits for the device. Errors: those of `run`; Internal
// where the device fails.
Status Time(const Device& device, const std::function<Status()>& run,
            float* milliseconds);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_RUNTIME_TIMING_H_
