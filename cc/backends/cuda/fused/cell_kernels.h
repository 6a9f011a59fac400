// Lookup of the kernels that are compiled for a cell and an element type:
// kernels/steps.cu and kernels/persistent.cu.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_

#include <string>

#include "backends/cuda/runtime/programs.h"
#include "backends/cuda/runtime/types.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cuda {

// The name of the cell's class in core/.
inline const char* CellName(CellKind cell) {
#define TF_LSTM_OPS_CASE(kind, Cell) \
  case CellKind::kind:               \
    return #Cell;
  switch (cell) {
    TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE)
    default:  // a cell of the CPU backend only
      break;
  }
#undef TF_LSTM_OPS_CASE
  return "";
}

// Sets `function` to a kernel of steps.cu. Errors: those of FindKernel.
template <class T>
Status FindCellKernel(const Device& device, CellKind cell, const char* kernel,
                      CUfunction* function) {
  return FindKernel(
      device,
      {"kernels/steps.cu",
       {std::string("TF_LSTM_OPS_CELL=") + CellName(cell), TypeMacro<T>()}},
      kernel, function);
}

// What a variant of persistent.cu is compiled for.
struct PersistentVariant {
  CellKind cell;
  int tiles;         // per block, each of kTileRows rows of weights
  bool in_clusters;  // the cluster form of block_group.h
};
// Sets `function` to a kernel of persistent.cu. Errors: those of FindKernel.
template <class T>
Status FindPersistentKernel(const Device& device,
                            const PersistentVariant& variant,
                            const char* kernel, CUfunction* function) {
  return FindKernel(
      device,
      {"kernels/persistent.cu",
       {std::string("TF_LSTM_OPS_CELL=") + CellName(variant.cell),
        TypeMacro<T>(), "TF_LSTM_OPS_TILES=" + std::to_string(variant.tiles),
        std::string("TF_LSTM_OPS_CLUSTER=") +
            (variant.in_clusters ? "1" : "0")}},
      kernel, function);
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_CELL_KERNELS_H_
