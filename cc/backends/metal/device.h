// The two TensorFlow plugins that make a Mac's GPU a device, behind one door.
//
// tensorflow-metal, Apple's: memory is an id<MTLBuffer>, the stream an object
// that owns a queue of command buffers; work is encoded and left to run.
// tensorflow-metal-plugin: memory is an address that the host can read, often
// within somebody's buffer, the stream a C++ object. Tensors are copied into
// buffers of our own and back, and the call waits, as the plugin's own kernels
// do. Where the plugin is told not to wait, reading its memory is a race: such
// calls fail.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_
#define TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_

#include <vector>

#include "backends/metal/program.h"
#include "core/status.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::metal {

// What TensorFlow says where a tensor is.
struct Memory {
  void* data = nullptr;
  bool on_host = false;  // an address of the host with either plugin
};

// Runs a program whose arguments and results are in `memory`, by their indices.
// Errors: Unimplemented, Internal, ResourceExhausted.
Status Execute(const tf::KernelContext& context, const Program& program,
               const std::vector<Memory>& arguments,
               const std::vector<Memory>& results);

// MPSGraph has had bfloat16 since macOS 14.
bool HasBFloat16();

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_DEVICE_H_
