// The forward pass of a layer direction, for one cell. An item is either all
// steps of a slice of the batch (RunSlice) or one step of a group of units
// (RunStepOfUnits). ForwardSchedule chooses between them.
//
// One step of the valid rows of the batch, with the shapes of the results. H is
// the cell size, H' is H rounded up to whole vectors, I the input size, P the
// size of h. m is h before the projection, Outputs::h of core/*_cell.h. cs is
// the state: of a GRU it is h. A part is the H columns of z of one
// pre-activation; GateBlock(part) is its place in the weights. Not all parts of
// all cells have both products.
//
//   z = x W + b                [rows, parts, H]   MultiplyInput
//   z = z + h_prev R           [rows, parts, H]   MultiplyRecurrent
//   m, cs = cell(z, cs_prev)   [rows, H]          ApplyCell, by core/*_cell.h
//   stores m, cs, and what the backward pass reads   StoreOutputs
//   h = m Wp, or h = m         [rows, P]          ProjectOutput, if projected
//
// ResetBeforeGruCell is an exception: it has a product within its equations
// (kResetsBefore). m is r * h_prev, zn the candidate's x W + b:
//
//   m, zn, update gate         [rows, H]          StoreM
//   h = cell(zn + m R, update gate, h_prev)
//                              [rows, H]          FinishStep
//
// The tiles of a layer-normalised cell (kReducesRows) only store x W and
// h_prev R, without bias, in different parts of z. apply_cell_to_rows then
// computes whole rows.
//
// One call of a product kernel computes x W or h_prev R of a tile, so the
// cell's equations read the products from the L1 cache.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_H_

#include "backends/cpu/simd/forward/second_product.h"
#include "backends/cpu/simd/forward/step_products.h"
#include "backends/cpu/simd/vector/cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The functions of a pass `f` that depend on the cell.
template <class T, class Cell>
struct ForwardStep {
  using V = VecT<T>;
  using Rows = ForwardRows<T>;
  using Tile = RowTile<T>;
  using Products =
      StepProducts<T, Cell::kPreActivations, Cell::kInputPreActivations,
                   Cell::kFirstRecurrent>;
  static constexpr int kL = kLanes<T>;
  static constexpr int kParts = Products::kParts;
  static constexpr int kInputs = Products::kInputs;
  static constexpr int kFirstRecurrent = Products::kFirstRecurrent;
  static constexpr int kRecurrent = Products::kRecurrent;
  static_assert(kRecurrent == Cell::kRecurrentPreActivations);

  // All steps of a slice of the batch.
  static void RunSlice(const Forward<T>& f, int64_t slice, int thread) {
    const Units all = {0, f.padded_size};
    for (int64_t step = 0; step < f.steps; ++step) {
      const Rows rows = f.RowsOf(step, slice, thread);
      if (rows.begin == rows.end) continue;
      if (rows.dropped_x) ApplyInputDropout(f, rows);
      RoundRows(f, rows, false);
      if constexpr (Cell::kReducesRows) StoreInputProduct(f, rows, all);
      ComputeStep(f, rows, all);
      if constexpr (Cell::kReducesRows) f.functions.apply_cell_to_rows(f, rows);
      if (!f.multiplies_m()) continue;
      RoundRows(f, rows, true);
      // ProjectOutput, or FinishStep of a ResetBeforeGruCell.
      FinishFromM(f, rows, {0, f.hidden_size});
    }
  }

  // One step of a group of units of all rows, up to what needs all units: that
  // is a phase of its own. The first step of a chunk computes x W + b of all
  // steps of the chunk. Until the next phase only this item reads and writes
  // its units of that z, so no thread waits for another.
  static void RunStepOfUnits(const Forward<T>& f, int64_t step, Units units,
                             int thread) {
    const Rows rows = f.RowsOf(step, thread);
    if (f.schedule.BeginsChunk(f.valid, step)) {
      const int64_t end = f.schedule.ChunkEnd(f.valid, step);
      Rows some = rows;
      some.dropped_x = f.DroppedX(thread);
      some.quads = nullptr;  // x W reads no h
      // With dropout, x is computed for as many rows as its memory holds.
      const int64_t count = some.dropped_x ? f.kBandRows : end - rows.begin;
      for (; some.begin < end; some.begin += count) {
        some.end = Min(some.begin + count, end);
        some.z = rows.z + (some.begin - rows.begin) * f.z_row();
        if (some.dropped_x) ApplyInputDropout(f, some);
        StoreInputProduct(f, some, units);
      }
    }
    RoundRowsOnce(f, rows, step, false, thread);
    ComputeStep(f, rows, units);
  }

  // The bands of rows times the vectors of units of a step.
  static void ComputeStep(const Forward<T>& f, const Rows& rows, Units units) {
    ForEachBand(f, rows, [&](const RowBand<T>& band) {
      const int64_t last = units.end - kL;
      for (int64_t k = units.begin; k < units.end; k += kL) {
        // Odd phases go backwards: what was used last is still in the cache.
        const int64_t u = units.reverse ? units.begin + last - k : k;
        if constexpr (Cell::kReducesRows) {
          StoreRecurrentProduct(f, band, u);
        } else {
          StepOfVector(f, band, u);
        }
      }
    });
  }

  // One vector of units of a band of rows.
  static void StepOfVector(const Forward<T>& f, const RowBand<T>& band,
                           int64_t u) {
    const ParametersAt<T, Cell> parameters(f.args, u);
    const auto with = parameters.get();
    V bias[kParts];
    for (int p = 0; p < kParts; ++p) bias[p] = BiasOf(f.args, f.shape, p, u);
    for (int64_t k = 0; k < band.rows; k += f.most_rows()) {
      const Tile tile = {band, k, Min(band.rows - k, f.most_rows()), u};
      V z[kMostRows][kParts];
      // The cells with any activations share the products of their shape.
      if constexpr (Cell::kSelectsActivations) {
        Products::MultiplyApart(f, tile, bias, z);
      } else {
        Products::Multiply(f, tile, bias, z);
      }
      if constexpr (kTiles) {
        for (int64_t r = 0; r < tile.rows; r += kRows) {
          Finish(f, tile.Part(r), with, z + r);
        }
      } else {
        Finish(f, tile, with, z);
      }
    }
  }

  // The cell's equations of a tile of at most kRows rows.
  TF_LSTM_OPS_INLINE static void Finish(const Forward<T>& f, const Tile& tile,
                                        const typename Cell::Parameters& with,
                                        const V (*z)[kParts]) {
    if constexpr (Cell::kResetsBefore) {
      SecondProductForward<T, Cell>::StoreM(f, tile, with, z);
    } else if constexpr (Cell::kSelectsActivations) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        ApplyCellToRow(f, tile, r, with, z + r);
      }
    } else {
      ApplyCell(f, tile, with, z);
    }
  }

  // The cell's equations. Their first half is computed for all rows of the tile
  // before the second one, so that the latencies overlap.
  TF_LSTM_OPS_INLINE static void ApplyCell(
      const Forward<T>& f, const Tile& tile,
      const typename Cell::Parameters& with, const V (*z)[kParts]) {
    T* const* states = tile.band.state + tile.first;
    V state[kRows];
    typename Cell::Outputs y[kRows];
    for (int64_t r = 0; r < tile.rows; ++r) {
      state[r] = Cell::kHasState
                     ? LoadN(states[r] + tile.u, f.cell_size - tile.u)
                     : V{};
      y[r] = Cell::Gates(z[r], state[r], with);
    }
    for (int64_t r = 0; r < tile.rows; ++r) {
      Cell::Output(z[r], state[r], with, &y[r]);
    }
    StoreOutputs(f, tile, y);
  }

  // The equations of row r of a tile. A function of its own: the activations
  // are calls, which are not worth the code of several rows.
  static TF_LSTM_OPS_NOINLINE void ApplyCellToRow(
      const Forward<T>& f, const Tile& tile, int64_t r,
      const typename Cell::Parameters& with, const V (*z)[kParts]) {
    ApplyCell(f, {tile.band, tile.first + r, 1, tile.u}, with, z);
  }

  TF_LSTM_OPS_INLINE static void StoreOutputs(const Forward<T>& f,
                                              const Tile& tile,
                                              const typename Cell::Outputs* y) {
    const int64_t u = tile.u, width = f.cell_size - u;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t row = tile.first + r;
      if constexpr (Cell::kHasState) {
        StoreN(y[r].*Cell::kState, tile.band.state[row] + u, width);
      }
      StoreN(y[r].h, tile.band.m[row] + u, width);
    }
    // h as the next step's product reads it, after dropout or rounding.
    if (f.effective_h_sets() > 0 && !f.projected()) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const PackedRow at = f.At(tile.packed_row(r));
        StoreEffectiveH(f, y[r].h, at.batch, at.ordinal + 1, u);
      }
    }
    ForEachSaved<Cell>([&](auto k, auto member) {
      f.args.saved.Rows(k, [&](auto* first) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          const int64_t at = f.args.saved.Offset(
              k, tile.packed_row(r), tile.band.output[tile.first + r]);
          StoreN(y[r].*member, first + at + u, width);
        }
      });
    });
  }

  // Stores z = x W + bias of some rows and units.
  static void StoreInputProduct(const Forward<T>& f, const Rows& rows,
                                Units units) {
    ForEachBand(f, rows, [&](const RowBand<T>& band) {
      for (int64_t u = units.begin; u < units.end; u += kL) {
        V bias[kParts], sums[kMostRows][kInputs];
        for (int p = 0; p < kParts; ++p)
          bias[p] = BiasOf(f.args, f.shape, p, u);
        for (int64_t k = 0; k < band.rows; k += f.most_rows()) {
          const Tile tile = {band, k, Min(band.rows - k, f.most_rows()), u};
          Products::MultiplyInput(f, tile, bias, sums);
          for (int64_t r = 0; r < tile.rows; ++r) {
            for (int p = 0; p < kInputs; ++p)
              Store(sums[r][p], Products::Z(f, tile, r, p));
          }
        }
      }
    });
  }

  // Stores h_prev R of a layer-normalised cell, behind x W.
  static void StoreRecurrentProduct(const Forward<T>& f, const RowBand<T>& band,
                                    int64_t u) {
    for (int64_t k = 0; k < band.rows; k += f.most_rows()) {
      const Tile tile = {band, k, Min(band.rows - k, f.most_rows()), u};
      V sums[kMostRows][kRecurrent] = {};
      Products::MultiplyRecurrent(f, tile, sums);
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int p = 0; p < kRecurrent; ++p) {
          Store(sums[r][p], Products::Z(f, tile, r, kFirstRecurrent + p));
        }
      }
    }
  }

  // Calls use(band) for the bands of some rows.
  template <class F>
  static void ForEachBand(const Forward<T>& f, const Rows& rows, const F& use) {
    RowBand<T> band;
    for (band.begin = rows.begin; band.begin < rows.end;
         band.begin += band.kBandRows) {
      const int64_t first = band.begin - rows.begin;
      band.rows = Min(rows.end - band.begin, band.kBandRows);
      band.z = rows.z ? rows.z + first * f.z_row() : nullptr;
      PackedRow at = f.At(band.begin);
      for (int64_t r = 0; r < band.rows; ++r) {
        if (r > 0) at = f.valid.Next(at);
        band.x[r] = f.FactorX(at, rows);
        band.h_prev[r] = f.FactorH(at);
        band.m[r] = f.M(at);
        band.state[r] = f.State(at);
        band.output[r] = at.output;
      }
      ReadQuads(f, rows, &band);
      use(band);
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STEP_H_
