// The lists of cells, which every backend reads. To add a cell of all backends,
// write its header, and add entries to the first and the third list; to add one
// of the CPU backend only, add an entry to the second list. Device code
// includes this header.
#ifndef TF_LSTM_OPS_CORE_CELLS_H_
#define TF_LSTM_OPS_CORE_CELLS_H_

#include <cstdint>

#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/macros.h"
#include "core/vanilla_rnn_cell.h"

// F(kind, class) for each cell of all backends.
#define TF_LSTM_OPS_CELLS(F)     \
  F(kLstm, LstmCell)             \
  F(kCustomLstm, CustomLstmCell) \
  F(kGru, GruCell)               \
  F(kTanh, TanhCell)             \
  F(kRelu, ReluCell)

// F(kind, class, constants) for each cell that only the CPU backend has. Device
// code does not include the headers of these cells. It reads their constants
// from another class.
#define TF_LSTM_OPS_CPU_CELLS(F)                               \
  F(kActivationLstm, ActivationLstmCell, LstmCell)             \
  F(kLayerNormLstm, LayerNormLstmCell, LayerNormLstmConstants) \
  F(kLayerNormGru, LayerNormGruCell, LayerNormGruConstants)    \
  F(kResetBeforeGru, ResetBeforeGruCell, ResetBeforeGruCell)   \
  F(kActivationGru, ActivationGruCell, GruCell)                \
  F(kActivationRnn, ActivationRnnCell, TanhCell)               \
  F(kActivationResetBeforeGru, ActivationResetBeforeGruCell, ResetBeforeGruCell)

// F(name, path) for each header that defines cells. The name is the file name
// without its extension.
#define TF_LSTM_OPS_CELL_HEADERS(F) \
  F(gru_cell, "core/gru_cell.h")    \
  F(lstm_cell, "core/lstm_cell.h")  \
  F(vanilla_rnn_cell, "core/vanilla_rnn_cell.h")

namespace tf_lstm_ops {

#define TF_LSTM_OPS_KIND(kind, ...) kind,
enum class CellKind : uint8_t {
  TF_LSTM_OPS_CELLS(TF_LSTM_OPS_KIND) TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_KIND)
};
#undef TF_LSTM_OPS_KIND

// The constants of the cells in layer_norm_cell.h. They save the cell state of
// an LSTM, and all terms of the pre-activations.
template <class Math>
struct LayerNormLstmConstants {
  static constexpr bool kHasCellState = true;
  static constexpr int kGates = 4;
  static constexpr int kSavedForBackward = 9;
};
template <class Math>
struct LayerNormGruConstants {
  static constexpr bool kHasCellState = false;
  static constexpr int kGates = 3;
  static constexpr int kSavedForBackward = 6;
};

// A template argument for reading a cell's constants, which do not depend on
// Math.
struct NoMath {
  using Value = float;
};

// A case of the switches below. It returns the cell's constant named
// TF_LSTM_OPS_CONSTANT.
// NOLINTBEGIN(bugprone-macro-parentheses): Cell is a class template.
#define TF_LSTM_OPS_CASE(kind, Cell) \
  case CellKind::kind:               \
    return Cell<NoMath>::TF_LSTM_OPS_CONSTANT;
#define TF_LSTM_OPS_CPU_CASE(kind, Cell, Constants) \
  TF_LSTM_OPS_CASE(kind, Constants)
#define TF_LSTM_OPS_ALL_CASES         \
  TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE) \
  TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_CPU_CASE)
// NOLINTEND(bugprone-macro-parentheses)

// Whether the cell has a cell state besides h.
TF_LSTM_OPS_DEVICE constexpr bool IsLstm(CellKind cell) {
#define TF_LSTM_OPS_CONSTANT kHasCellState
  switch (cell) { TF_LSTM_OPS_ALL_CASES }
#undef TF_LSTM_OPS_CONSTANT
  return false;
}

// Number of gates that have weights.
TF_LSTM_OPS_DEVICE constexpr int GateCount(CellKind cell) {
#define TF_LSTM_OPS_CONSTANT kGates
  switch (cell) { TF_LSTM_OPS_ALL_CASES }
#undef TF_LSTM_OPS_CONSTANT
  return 0;
}

// Number of saved activations that the backward pass of a step needs, besides
// h. They are the first ones of the cell's list kSaved.
TF_LSTM_OPS_DEVICE constexpr int SavedCount(CellKind cell) {
#define TF_LSTM_OPS_CONSTANT kSavedForBackward
  switch (cell) { TF_LSTM_OPS_ALL_CASES }
#undef TF_LSTM_OPS_CONSTANT
  return 0;
}

#undef TF_LSTM_OPS_ALL_CASES
#undef TF_LSTM_OPS_CPU_CASE
#undef TF_LSTM_OPS_CASE

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELLS_H_
