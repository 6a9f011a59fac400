// CellShape: the constants of a cell as values, for code that serves all cells.
#ifndef TF_LSTM_OPS_CORE_CELL_SHAPE_H_
#define TF_LSTM_OPS_CORE_CELL_SHAPE_H_

#include "core/cells.h"
#include "core/layer_norm_cell.h"

namespace tf_lstm_ops {

// LstmCell says what the constants mean.
struct CellShape {
  int pre_activations = 0;
  int input = 0;            // kInputPreActivations
  int first_recurrent = 0;  // kFirstRecurrent
  int recurrent = 0;        // kRecurrentPreActivations
  bool has_state = false;
  bool has_cell_state = false;
  bool has_forget_bias = false;
  bool reduces_rows = false;
  bool resets_before = false;

  // Whether all pre-activations are sums of x W and h R.
  constexpr bool all_see_both() const {
    return first_recurrent == 0 && recurrent == input;
  }
  // Pre-activations that are stored before the equations. A cell that reduces
  // rows stores the products with h apart from those with x.
  constexpr int z_parts() const {
    return reduces_rows ? pre_activations : input;
  }
};

template <class Cell>
constexpr CellShape CellShapeOf() {
  CellShape shape;
  shape.pre_activations = Cell::kPreActivations;
  shape.input = Cell::kInputPreActivations;
  shape.first_recurrent = Cell::kFirstRecurrent;
  shape.recurrent = Cell::kRecurrentPreActivations;
  shape.has_state = Cell::kHasState;
  shape.has_cell_state = Cell::kHasCellState;
  shape.has_forget_bias = Cell::kHasForgetBias;
  shape.reduces_rows = Cell::kReducesRows;
  shape.resets_before = Cell::kResetsBefore;
  return shape;
}

// A class as a value, to pass it to a function.
template <class C>
struct CellClass {
  using Cell = C;
};

// Calls f(CellClass<Cell>()) for the class of a cell, and returns its result.
// All results have one type.
template <class Math, class F>
TF_LSTM_OPS_INLINE constexpr decltype(auto) WithCell(CellKind cell,
                                                     const F& f) {
#define TF_LSTM_OPS_CASE(kind, Cell, ...) \
  case CellKind::kind:                    \
    return f(CellClass<Cell<Math>>());
  switch (cell) {
    TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE)
    TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_CASE)
  }
#undef TF_LSTM_OPS_CASE
  __builtin_unreachable();
}

constexpr CellShape CellShapeOf(CellKind cell) {
  return WithCell<NoMath>(cell, [](auto of) TF_LSTM_OPS_LAMBDA {
    return CellShapeOf<typename decltype(of)::Cell>();
  });
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_CELL_SHAPE_H_
