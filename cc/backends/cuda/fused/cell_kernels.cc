#include "backends/cuda/fused/cell_kernels.h"

namespace tf_lstm_ops::cuda {

const char* CellName(CellKind cell) {
  switch (cell) {
    case CellKind::kLstm:
      break;
    case CellKind::kCustomLstm:
      return "CustomLstmCell";
    case CellKind::kGru:
      return "GruCell";
    case CellKind::kTanh:
      return "TanhCell";
    case CellKind::kRelu:
      return "ReluCell";
  }
  return "LstmCell";
}

}  // namespace tf_lstm_ops::cuda
