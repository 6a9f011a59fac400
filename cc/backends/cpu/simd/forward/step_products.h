// The products of a step of the forward pass, for a tile of rows and units.
// They depend on the shape of a cell only, not on its equations.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_PRODUCTS_H_

#include "backends/cpu/simd/forward/products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Up to kBandRows packed rows of a step, or for x W of a chunk of steps, and
// what they read and write.
template <class T>
struct RowBand {
  static constexpr int64_t kBandRows = ForwardSchedule::kBandRows;

  int64_t begin, rows;
  // [rows, z parts, H'], as far as z has been computed. Null: the tiles
  // compute x W + b.
  T* z;
  const T *x[kBandRows], *h_prev[kBandRows];  // after dropout or rounding
  T *m[kBandRows], *state[kBandRows];
  int64_t output[kBandRows];  // rows of the outputs
};

// Sets the rows of h_prev to those of rows.quads, unless that is null.
template <class T>
TF_LSTM_OPS_NOINLINE void ReadQuads(const Forward<T>& f,
                                    const ForwardRows<T>& rows,
                                    RowBand<T>* band) {
  if constexpr (Forward<T>::kCanQuads) {
    for (int64_t r = 0; rows.quads && r < band->rows; ++r) {
      band->h_prev[r] = f.Quads(band->begin + r, rows);
    }
  }
}

// Rows [first, first + rows) of a band, at most f.most_rows(), and one vector
// of units from u on.
template <class T>
struct RowTile {
  const RowBand<T>& band;
  int64_t first, rows, u;

  int64_t packed_row(int64_t r) const { return band.begin + first + r; }
  // The rows from r on, at most kRows.
  RowTile Part(int64_t r) const {
    return {band, first + r, Min(rows - r, kRows), u};
  }
};

// Parts [0, inputs) have x W, parts [first_recurrent, parts) have h_prev R.
template <class T, int parts, int inputs, int first_recurrent>
struct StepProducts {
  using V = VecT<T>;
  using Tile = RowTile<T>;
  static constexpr int kParts = parts;
  static constexpr int kInputs = inputs;
  static constexpr int kFirstRecurrent = first_recurrent;
  static constexpr int kRecurrent = parts - first_recurrent;

  // Multiply as a function of its own.
  static TF_LSTM_OPS_NOINLINE void MultiplyApart(const Forward<T>& f,
                                                 const Tile& tile,
                                                 const V* bias,
                                                 V (*z)[kParts]) {
    Multiply(f, tile, bias, z);
  }

  // z = x W + h_prev R + bias. A part may have one of the products only.
  TF_LSTM_OPS_INLINE static void Multiply(const Forward<T>& f, const Tile& tile,
                                          const V* bias, V (*z)[kParts]) {
    if constexpr (kFirstRecurrent == 0 && kInputs == kParts) {
      LoadOrMultiplyInput(f, tile, bias, z);
      MultiplyRecurrent(f, tile, z);
    } else {
      V input[kMostRows][kInputs], sums[kMostRows][kRecurrent];
      LoadOrMultiplyInput(f, tile, bias, input);
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int p = kFirstRecurrent; p < kParts; ++p) {
          sums[r][p - kFirstRecurrent] = p < kInputs ? input[r][p] : bias[p];
        }
      }
      MultiplyRecurrent(f, tile, sums);
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int p = 0; p < kParts; ++p) {
          z[r][p] =
              p < kFirstRecurrent ? input[r][p] : sums[r][p - kFirstRecurrent];
        }
      }
    }
  }

  // sums = x W + bias, from z where that has been computed.
  static void LoadOrMultiplyInput(const Forward<T>& f, const Tile& tile,
                                  const V* bias, V (*sums)[kInputs]) {
    if (!tile.band.z) return MultiplyInput(f, tile, bias, sums);
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) sums[r][p] = Load(Z(f, tile, r, p));
    }
  }

  // sums = x W + bias. Without input weights, x W is x itself. With dropout
  // each part has its own x.
  static void MultiplyInput(const Forward<T>& f, const Tile& tile,
                            const V* bias, V (*sums)[kInputs]) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) sums[r][p] = bias[p];
    }
    if (!f.args.weights.input) return AddInput(f, tile, sums);
    const FactorRows<T> x = {tile.band.x + tile.first, tile.rows,
                             f.FactorWords(f.input_size)};
    MultiplyTile(f, tile, x, f.packed.Input(tile.u),
                 f.args.input_dropout.data != nullptr, sums);
  }

  // A part reads its columns of x, or all parts read the same ones: then the
  // stride is 0.
  static void AddInput(const Forward<T>& f, const Tile& tile,
                       V (*sums)[kInputs]) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int p = 0; p < kInputs; ++p) {
        const T* x = tile.band.x[tile.first + r] +
                     f.GateBlock(p) * f.args.config.x_gate_stride + tile.u;
        sums[r][p] = LoadN(x, f.cell_size - tile.u) + sums[r][p];
      }
    }
  }

  // sums += h_prev R.
  static void MultiplyRecurrent(const Forward<T>& f, const Tile& tile,
                                V (*sums)[kRecurrent]) {
    const FactorRows<T> h_prev = {tile.band.h_prev + tile.first, tile.rows,
                                  f.batch * f.FactorWords(f.hidden_size)};
    MultiplyTile(f, tile, h_prev, f.packed.Recurrent(tile.u),
                 f.args.recurrent_dropout.data != nullptr, sums);
  }

  // sums += a b. With `own_rows` each gate has its own rows of `a`. The first
  // tile of a band may prefetch the weights; the others read them from the L2
  // cache.
  template <int C>
  TF_LSTM_OPS_INLINE static void MultiplyTile(const Forward<T>& f,
                                              const Tile& tile,
                                              const FactorRows<T>& a,
                                              WeightColumns<T> b, bool own_rows,
                                              V (*sums)[C]) {
    b.prefetches = tile.first == 0 && f.schedule.prefetches_weights();
    own_rows ? MultiplyRows<C, true>(a, b, sums) : MultiplyRows<C>(a, b, sums);
  }

  // z of row r of a tile.
  static T* Z(const Forward<T>& f, const Tile& tile, int64_t r, int part) {
    return tile.band.z + (tile.first + r) * f.z_row() + part * f.padded_size +
           tile.u;
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_PRODUCTS_H_
