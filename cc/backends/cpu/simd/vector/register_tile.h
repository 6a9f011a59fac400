// RegisterTile: the part of a product's result that a kernel keeps in
// registers.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_REGISTER_TILE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_REGISTER_TILE_H_

#include <type_traits>

#include "backends/cpu/simd/vector/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

struct RegisterTile {
  int rows, columns;  // of the result; columns in vectors
  // Whether a kernel keeps the elements of A for one k in registers and loads
  // the vectors of B one at a time. Otherwise the other way round.
  bool keeps_rows;
};

// The register tile of a kernel that computes `rows` x `columns` vectors. If
// the registers cannot hold all of them, it has half of the columns or half of
// the rows. Three quarters of the registers hold the result, the others the
// factors. `own_rows`: each column is the product of its own matrix A, so a
// column of A cannot be used for several columns of the result.
constexpr RegisterTile RegisterTileOf(int rows, int columns, bool own_rows) {
  constexpr int kResult = kRegisters / 4 * 3;
  RegisterTile size = {rows, columns, false};
  if (rows * columns > kResult && columns % 2 == 0) size.columns = columns / 2;
  if (rows * size.columns > kResult) size.rows = (rows + 1) / 2;
  size.keeps_rows =
      !own_rows && (size.rows + 1) * size.columns + 1 > kRegisters;
  return size;
}

// Calls f(row, rows, column, columns), of type integral_constant<int, .>, for
// each register tile of a kernel's result, R rows times C vectors.
template <int R, int C, bool kOwnA, int kRow = 0, int kColumn = 0, class F>
TF_LSTM_OPS_INLINE void ForEachRegisterTile(const F& f) {
  constexpr RegisterTile kSize = RegisterTileOf(R, C, kOwnA);
  constexpr int kRegisterRows = kSize.rows < R - kRow ? kSize.rows : R - kRow;
  f(std::integral_constant<int, kRow>(),
    std::integral_constant<int, kRegisterRows>(),
    std::integral_constant<int, kColumn>(),
    std::integral_constant<int, kSize.columns>());
  if constexpr (kColumn + kSize.columns < C) {
    ForEachRegisterTile<R, C, kOwnA, kRow, kColumn + kSize.columns>(f);
  } else if constexpr (kRow + kRegisterRows < R) {
    ForEachRegisterTile<R, C, kOwnA, kRow + kRegisterRows, 0>(f);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_REGISTER_TILE_H_
