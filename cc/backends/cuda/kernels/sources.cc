#include "backends/cuda/kernels/sources.h"

#include "core/cells.h"

// The files of the device code: a name, and the path as in #include.
#define TF_LSTM_OPS_SOURCES(F)                                    \
  F(steps, "backends/cuda/kernels/steps.cu")                      \
  F(tensors, "backends/cuda/kernels/tensors.cu")                  \
  F(block, "backends/cuda/kernels/block.h")                       \
  F(kernel, "backends/cuda/kernels/kernel.h")                     \
  F(step_arguments, "backends/cuda/kernels/step_arguments.h")     \
  F(tensor_arguments, "backends/cuda/kernels/tensor_arguments.h") \
  F(sequence, "core/sequence.h")                                  \
  F(layer_tensors, "core/layer_tensors.h")                        \
  F(activation, "core/activation.h")                              \
  F(float16, "core/float16.h")                                    \
  F(gate_order, "core/gate_order.h")                              \
  F(cell_activations, "core/cell_activations.h")                  \
  F(cell_options, "core/cell_options.h")                          \
  F(cells, "core/cells.h")                                        \
  F(macros, "core/macros.h")                                      \
  TF_LSTM_OPS_CELL_HEADERS(F)

// Replacements for headers of the standard library.
#define TF_LSTM_OPS_STANDARD_SOURCES(F) \
  F(array, "array")                     \
  F(cstdint, "cstdint")

// The assembler embeds the files. Paths are relative to the root of the
// repository, where the compiler runs.
#define TF_LSTM_OPS_EMBED(name, path)                                     \
  asm(".section .rodata\ntf_lstm_ops_cuda_" #name ":\n.incbin \"cc/" path \
      "\"\n.byte 0\n.previous\n");                                        \
  extern "C" const char tf_lstm_ops_cuda_##name[];
#define TF_LSTM_OPS_EMBED_STANDARD(name, file) \
  TF_LSTM_OPS_EMBED(name, "backends/cuda/kernels/nvrtc/" file)
#define TF_LSTM_OPS_SOURCE(name, file) {file, tf_lstm_ops_cuda_##name},

TF_LSTM_OPS_SOURCES(TF_LSTM_OPS_EMBED)
TF_LSTM_OPS_STANDARD_SOURCES(TF_LSTM_OPS_EMBED_STANDARD)

namespace tf_lstm_ops::cuda {

const std::vector<Source>& Sources() {
  static const std::vector<Source> sources = {TF_LSTM_OPS_SOURCES(
      TF_LSTM_OPS_SOURCE) TF_LSTM_OPS_STANDARD_SOURCES(TF_LSTM_OPS_SOURCE)};
  return sources;
}

}  // namespace tf_lstm_ops::cuda
