// Products of pairs of bfloat16 by tiles: on AMX, or emulated by loops with the
// same order of sums.
//
// A tile has kTileRows rows of 64 bytes. One instruction adds the product of a
// tile of A, [16 rows, 16 pairs], and a tile of B, [16 pairs, 16 columns], to
// a tile of sums, [16 rows, 16 columns]. Both operands are read as they are
// packed: a row of A is contiguous, the rows of B are C vectors apart. The
// numbers of pairs are multiples of kTilePairs, with zeros behind the last
// element, so all tiles have one configuration.
//
// Every sum is computed in this order: for each block of 16 pairs, the products
// of the pairs' first elements are added to one another, those of the second
// elements likewise, then both sums to each other, and that to the result. It
// depends on neither the number of threads nor the other rows and columns. The
// source is the pseudocode of TDPBF16PS in Intel's manual.
//
// The emulation has tiles of kLanes columns. It runs on every processor.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_TILES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_TILES_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/vector/pairs.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Rows of a tile.
constexpr int kTileRows = 16;
// Multiply-adds in the time of one of float vectors: 1.9 to 2.1 TFLOP/s against
// 0.2 on a core of a Xeon 6, with operands in the L1 cache.
constexpr double kTileSpeed = 10;
// The same of dot products of pairs.
constexpr double kDotSpeed = 2;
// Rows of A of a product: two tiles. Each tile of B is then used twice.
constexpr int kMostTileRows = 2 * kTileRows;

// The rows of A of a product: at most so many, and with weights of a format.
constexpr int kMostRows = kTiles ? kMostTileRows : kRows;
constexpr int64_t MostRows(WeightFormat format) {
  return format == WeightFormat::kBFloat16Pairs ? kMostRows : kRows;
}

constexpr double SpeedOf(WeightFormat format) {
  return !kDotsPairs || format != WeightFormat::kBFloat16Pairs ? 1
         : kTiles                                              ? kTileSpeed
                                                               : kDotSpeed;
}

#if defined(__AMX_BF16__)

// The instructions. Assembly has "memory" clobbers, which GCC's functions for
// loads lack: the compiler could move stores to A behind the load.
template <int kTile>
TF_LSTM_OPS_INLINE void LoadTile(const void* from, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes),
               "i"(kTile)
               : "memory");
}
template <int kTile>
TF_LSTM_OPS_INLINE void StoreTile(void* to, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes),
               "i"(kTile)
               : "memory");
}
template <int kSums, int kA, int kB>
TF_LSTM_OPS_INLINE void DotTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA),
               "i"(kB));
}

// Configures the tiles of this thread, and releases them at the end: a thread
// without work has no tiles, and the kernel saves none of them.
class TileScope {
 public:
  explicit TileScope(bool used) : used_(used) {
    if (!used) return;
    Configuration all;
    for (int t = 0; t < 8; ++t) {
      all.row_bytes[t] = kTilePairs * sizeof(BFloat16Pair);
      all.rows[t] = kTileRows;
    }
    asm volatile("ldtilecfg %0" ::"m"(all));
  }
  ~TileScope() {
    if (used_) asm volatile("tilerelease");
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  // The operand of LDTILECFG.
  struct alignas(64) Configuration {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  static_assert(sizeof(Configuration) == 64, "the processor reads 64 bytes");

  const bool used_;
};

#else

struct TileScope {
  explicit TileScope(bool) {}
  ~TileScope() {}  // not trivial: a scope without effect is not unused
};

#endif

// The operands of a product: `words` pairs of A and B, a multiple of
// kTilePairs. Strides in words. Of A `rows` rows exist.
struct TileFactors {
  const BFloat16Pair* const* row;
  int64_t rows;
  const BFloat16Pair* b;
  int64_t b_stride;
  int64_t words;
};

#if defined(__AMX_BF16__)

// The rows of A in memory as tiles load them. Whole tiles of rows that are
// equally far apart are loaded where they are. Others are copied to a buffer,
// a block at a time, with zeros behind the last row.
template <int R>
class TileRowsOfA {
 public:
  TileRowsOfA(const TileFactors& of, int64_t column_offset)
      : row_(of.row), rows_(of.rows), offset_(column_offset) {
    const int64_t stride = rows_ > 1 ? row_[1] - row_[0] : kTilePairs;
    in_place_ = rows_ == R * kTileRows;
    for (int64_t r = 1; r < rows_; ++r) {
      in_place_ &= row_[r] - row_[r - 1] == stride;
    }
    stride_ = in_place_ ? stride : kTilePairs;
    for (int64_t r = rows_; r < R * kTileRows; ++r) {
      Store(VecT<BFloat16Pair>{}, copy_[r]);
    }
  }

  // The block of all rows from word k on.
  TF_LSTM_OPS_INLINE const BFloat16Pair* Block(int64_t k) {
    if (in_place_) return row_[0] + offset_ + k;
    for (int64_t r = 0; r < rows_; ++r) {
      Store(Load(row_[r] + offset_ + k), copy_[r]);
    }
    return copy_[0];
  }
  int64_t stride() const { return stride_; }

 private:
  const BFloat16Pair* const* row_;
  const int64_t rows_, offset_;
  bool in_place_;
  int64_t stride_;
  alignas(64) BFloat16Pair copy_[R * kTileRows][kTilePairs];
};

// sums += A B for R tiles of rows and K vectors of columns, R * K <= 4. Sums
// are [rows, C, lanes].
template <int R, int K, int C>
TF_LSTM_OPS_INLINE void AddTiles(const TileFactors& of, int64_t offset,
                                 const BFloat16Pair* b, VecT<float>* sums) {
  constexpr int64_t kWord = sizeof(BFloat16Pair);
  constexpr int64_t kStride = C * sizeof(VecT<float>);
  constexpr int64_t kTile = kTileRows * C;  // vectors of a tile of sums
  TileRowsOfA<R> a(of, offset);
  // Tiles 0 to 3 are sums, 4 and 5 are of A, 6 and 7 of B.
  LoadTile<0>(sums, kStride);
  if constexpr (K > 1) LoadTile<1>(sums + 1, kStride);
  if constexpr (R == 2) LoadTile<2>(sums + kTile, kStride);
  if constexpr (R == 2 && K > 1) LoadTile<3>(sums + kTile + 1, kStride);
  if constexpr (R == 1 && K > 2) LoadTile<2>(sums + 2, kStride);
  if constexpr (R == 1 && K > 3) LoadTile<3>(sums + 3, kStride);
  const int64_t a_stride = a.stride() * kWord, b_stride = of.b_stride * kWord;
  for (int64_t k = 0; k < of.words; k += kTilePairs) {
    const BFloat16Pair* rows = a.Block(k);
    const BFloat16Pair* columns = b + k * of.b_stride;
    LoadTile<4>(rows, a_stride);
    if constexpr (R == 2) LoadTile<5>(rows + kTileRows * a.stride(), a_stride);
    LoadTile<6>(columns, b_stride);
    DotTiles<0, 4, 6>();
    if constexpr (R == 2) DotTiles<2, 5, 6>();
    if constexpr (K > 1) {
      LoadTile<7>(columns + kTilePairs, b_stride);
      DotTiles<1, 4, 7>();
      if constexpr (R == 2) DotTiles<3, 5, 7>();
    }
    if constexpr (K > 2) {
      LoadTile<6>(columns + 2 * kTilePairs, b_stride);
      DotTiles<2, 4, 6>();
    }
    if constexpr (K > 3) {
      LoadTile<7>(columns + 3 * kTilePairs, b_stride);
      DotTiles<3, 4, 7>();
    }
  }
  StoreTile<0>(sums, kStride);
  if constexpr (K > 1) StoreTile<1>(sums + 1, kStride);
  if constexpr (R == 2) StoreTile<2>(sums + kTile, kStride);
  if constexpr (R == 2 && K > 1) StoreTile<3>(sums + kTile + 1, kStride);
  if constexpr (R == 1 && K > 2) StoreTile<2>(sums + 2, kStride);
  if constexpr (R == 1 && K > 3) StoreTile<3>(sums + 3, kStride);
}

// sums += A B for K vectors of columns from vector c on.
template <int K, int C>
TF_LSTM_OPS_INLINE void AddColumns(const TileFactors& of, int64_t offset, int c,
                                   VecT<float> (*sums)[C]) {
  const BFloat16Pair* b = of.b + c * kLanes<float>;
  if (of.rows <= kTileRows) {
    AddTiles<1, K, C>(of, offset, b, &sums[0][c]);
  } else {
    AddTiles<2, (K < 2 ? K : 2), C>(of, offset, b, &sums[0][c]);
    if constexpr (K > 2) {
      AddTiles<2, K - 2, C>(of, offset, b + 2 * kLanes<float>, &sums[0][c + 2]);
    }
  }
}

#else

// The emulation of AddColumns.
template <int K, int C>
void AddColumns(const TileFactors& of, int64_t offset, int first,
                VecT<float> (*sums)[C]) {
  for (int64_t r = 0; r < of.rows; ++r) {
    for (int c = first; c < first + K; ++c) {
      const BFloat16Pair* b = of.b + c * kLanes<float>;
      for (int64_t k = 0; k < of.words; k += kTilePairs) {
        VecT<float> even = {}, odd = {};
        for (int64_t w = k; w < k + kTilePairs; ++w) {
          const auto a = Broadcast(of.row[r][offset + w]);
          const auto row = Load(b + w * of.b_stride);
          even = Fma(First(a), First(row), even);
          odd = Fma(Second(a), Second(row), odd);
        }
        sums[r][c] = sums[r][c] + (even + odd);
      }
    }
  }
}

#endif

// sums += A B for C vectors of columns and up to kMostTileRows rows. With
// kOwnA the rows of column c begin c * gate_stride words behind the others.
// `sums` has kTileRows rows, or kMostTileRows if there are more rows than that.
template <int C, bool kOwnA>
__attribute__((noinline)) void MultiplyTiles(const TileFactors& of,
                                             int64_t gate_stride,
                                             VecT<float> (*sums)[C]) {
  if constexpr (kOwnA) {
    AddColumns<1, C>(of, 0, 0, sums);
    if constexpr (C > 1) AddColumns<1, C>(of, gate_stride, 1, sums);
    if constexpr (C > 2) AddColumns<1, C>(of, 2 * gate_stride, 2, sums);
    if constexpr (C > 3) AddColumns<1, C>(of, 3 * gate_stride, 3, sums);
  } else {
    AddColumns<C, C>(of, 0, 0, sums);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_TILES_H_
