// Kernels that are compiled for a cell and a type of tensors: kernels/rnn.cu,
// kernels/persistent.cu.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_

#include <string>
#include <vector>

#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/runtime/programs.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// Of the cells in core/.
const char* CellName(CellKind cell);

template <class T>
Status FindCellKernel(const Device& device, CellKind cell, const char* kernel,
                      CUfunction* function) {
  return FindKernel(
      device,
      {"kernels/rnn.cu",
       {std::string("TF_LSTM_OPS_CELL=") + CellName(cell), TypeMacro<T>()}},
      kernel, function);
}

// One of all steps, with so many tiles of weights in a block.
template <class T>
Status FindPersistentKernel(const Device& device, CellKind cell, int tiles,
                            bool in_clusters, const char* kernel,
                            CUfunction* function) {
  return FindKernel(
      device,
      {"kernels/persistent.cu",
       {std::string("TF_LSTM_OPS_CELL=") + CellName(cell), TypeMacro<T>(),
        "TF_LSTM_OPS_TILES=" + std::to_string(tiles),
        std::string("TF_LSTM_OPS_CLUSTER=") + (in_clusters ? "1" : "0")}},
      kernel, function);
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_
