// Tile: the part of a product's result that a kernel keeps in registers.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_TILE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_TILE_H_

#include "backends/cpu/simd/vec.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

constexpr int kRows = 6;         // rows of the result that a kernel computes
constexpr int kColumns = 4;      // vectors of columns that a kernel computes
constexpr int64_t kChain = 128;  // multiply-adds of a chain; see gemm.h

struct Tile {
  int rows, columns;  // of the result; columns in vectors
  // One step of the sum multiplies a column vector of A with a row vector of B.
  // If true, the column of A is loaded first, and the row of B element by
  // element. Otherwise the row of B is loaded first.
  bool keeps_rows;
};

// The tile of a kernel that computes `rows` x `columns` vectors. If the
// registers cannot hold all of them, the tile has half of the columns or half
// of the rows. Three quarters of the registers hold the result, the others the
// factors. `own_rows`: each column is the product of its own matrix A, so a
// column of A cannot be used for several columns of the result.
constexpr Tile TileOf(int rows, int columns, bool own_rows) {
  constexpr int kResult = kRegisters / 4 * 3;
  Tile tile = {rows, columns, false};
  if (rows * columns > kResult && columns % 2 == 0) tile.columns = columns / 2;
  if (rows * tile.columns > kResult) tile.rows = (rows + 1) / 2;
  tile.keeps_rows =
      !own_rows && (tile.rows + 1) * tile.columns + 1 > kRegisters;
  return tile;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_TILE_H_
