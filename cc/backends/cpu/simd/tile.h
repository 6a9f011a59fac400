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
  // Whether the rows' factors stay in registers while the columns pass.
  // Otherwise the columns' factors stay while the rows pass.
  bool keeps_rows;
  // Whether the kernel prefetches the next weights. With few rows, the loads of
  // the weights need the whole bandwidth of the cache.
  bool prefetches;
};

// The tile of a kernel that computes `rows` x `columns` vectors: all of them,
// or as many columns or rows as the registers hold. Three quarters of the
// registers hold the result, the others the factors. With `own_rows` each
// column has its own rows.
constexpr Tile TileOf(int rows, int columns, bool own_rows) {
  constexpr int kResult = kRegisters / 4 * 3;
  Tile tile = {rows, columns, false, 2 * rows > kRows};
  if (rows * columns > kResult && columns % 2 == 0) tile.columns = columns / 2;
  if (rows * tile.columns > kResult) tile.rows = (rows + 1) / 2;
  tile.keeps_rows =
      !own_rows && (tile.rows + 1) * tile.columns + 1 > kRegisters;
  return tile;
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_TILE_H_
