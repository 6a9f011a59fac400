// Execution of a Program with either of the two TensorFlow plugins that make a Mac's GPU a device.
//
// tensorflow-metal (Apple): a tensor's data is an id<MTLBuffer>. The stream is an object that owns
// a queue of command buffers. Execute encodes the work and does not wait for it.
//
// tensorflow-metal-plugin: a tensor's data is an address in host memory, often inside a larger
// allocation. The stream is a C++ object and is not used. Execute copies tensors into its own
// buffers, waits for the work, and copies the results back, as the plugin's own kernels do. If the
// plugin is set to run asynchronously, its memory cannot be read safely, and Execute fails.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_
#define TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_

#include <vector>

#include "backends/metal/program.h"
#include "core/status.h"

namespace tf_lstm_ops::metal {

// The data of a tensor. Not owned.
struct Memory {
  void* data = nullptr;
  bool on_host = false;  // a host address with either plugin
};

// Whether Execute needs TensorFlow's stream (TF_GetStream). It does with Apple's plugin only.
bool NeedsStream();

// Runs a program. The index of a port (Program::Port) is its position in `arguments` or `results`.
// The caller owns the memory, which must not overlap. `stream` is null unless NeedsStream(); not
// owned. With Apple's plugin the work is only enqueued, so a later call returns the error of a
// command buffer that has failed. MPSGraph may raise an NSException with the other plugin. Errors:
// Unimplemented (the plugin runs asynchronously), Internal (Metal or MPSGraph failed),
// ResourceExhausted (no memory for a buffer).
Status Execute(void* stream, const Program& program, const std::vector<Memory>& arguments,
               const std::vector<Memory>& results);

bool IsMacOsAtLeast(int major, int minor);
// Whether MPSGraph supports bfloat16.
inline bool HasBFloat16() { return IsMacOsAtLeast(14, 0); }

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_
