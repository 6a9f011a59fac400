// The backward pass of a layer direction, for one cell. backward_schedule.h
// says how the work is divided; products.h has the products.
//
// One step of the valid rows of the batch, from the last step to the first,
// with the shapes of the results. dv is the gradient with respect to v, X^T the
// transposed X. Sizes, m, cs and parts are those of forward/step.h.
//
//   dh = dh_above + dh_prev of the step after it
//                       [rows, P]          LoadOutputGrads; LoadProjectedHGrad
//   dm = dh Wp^T, or dm = dh
//                       [rows, H]          MultiplyBack, if projected
//   dz                  [rows, parts, H]   RunCells, by core/*_cell.h
//   dcs_prev            [rows, H]          RunCells
//   db and the gradients of the peepholes: sums over the rows
//                       [parts, H]         RunCells
//   dh_prev = dz R^T    [rows, P]          MultiplyHGrad
//   dx = dz W^T         [rows, I]          MultiplyXGrad
//
// and at the end of a chunk of steps, from the x, h_prev and m that Gather
// copied:
//
//   dW += x^T dz, dR += h_prev^T dz, dWp += m^T dh     AddWeightGrads
//
// This is the order of RunSlice, which computes a slice of the batch of a small
// layer. Without slices, phases.h calls these functions, with MultiplyChunk
// instead of AddWeightGrads. A step then begins with MultiplyHGrad of the step
// after it. MultiplyChunk also computes dx. An item has a group of f.group
// units. second_product.h has the equations of a ResetBeforeGruCell,
// layer_norm.h those of a layer-normalised cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_H_

#include "backends/cpu/simd/backward/products.h"
#include "backends/cpu/simd/vector/cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The functions of a pass `f` that depend on the cell.
template <class T, class Cell>
struct BackwardStep {
  using V = VecT<T>;
  using Rows = BackwardRows<T>;
  using Outputs = typename Cell::Outputs;
  using Parameters = typename Cell::Parameters;
  static constexpr int kL = kLanes<T>;
  static constexpr int kParts = Cell::kPreActivations;

  // All steps and products of a slice of the batch.
  static void RunSlice(const Backward<T>& f, int64_t slice, int thread) {
    T* sums = f.sums + slice * f.SumsSize();
    f.ClearSums(sums, 0, f.padded_size);
    for (int64_t c = 0; c < f.schedule.chunks(); ++c) {
      // Packed rows of the chunk so far: the place of the next step's rows.
      int64_t chunk_rows = 0;
      const BackwardSchedule::Steps steps = f.schedule.StepsOf(c);
      for (int64_t step = steps.end - 1; step >= steps.begin; --step) {
        const Rows rows = {f.SliceBegin(slice, step),
                           f.SliceBegin(slice + 1, step), chunk_rows,
                           &f.chunk_buffers[thread], sums};
        chunk_rows += rows.count();
        if (rows.count() > 0) RunStepOfSlice(f, rows, step, thread);
      }
      AddWeightGrads(f, slice, thread, chunk_rows, /*add=*/c > 0);
    }
    // A GRU's state is h: its gradient is a part of that of h0.
    AddStateGrad(f, f.schedule.FirstBatchRow(slice),
                 f.schedule.FirstBatchRow(slice + 1), 0, f.cell_size);
  }

  // One step of a slice.
  static void RunStepOfSlice(const Backward<T>& f, const Rows& rows,
                             int64_t step, int thread) {
    PrefetchFactors(f, rows);
    if (f.projected()) {
      for (int64_t n = 0; n < f.hidden_size; n += f.group) {
        LoadProjectedHGrad(f, rows, n);
      }
    }
    // The functions of the cell: RunCells below, or those of second_product.h
    // or layer_norm.h.
    if constexpr (Cell::kReducesRows) f.functions.run_rows(f, rows, thread);
    if constexpr (Cell::kResetsBefore) {
      ForEachGroup(f, [&](int64_t n) { f.functions.begin_cells(f, rows, n); });
    }
    if constexpr (!Cell::kReducesRows) {
      ForEachGroup(f, [&](int64_t n) { f.functions.run_cells(f, rows, n); });
    }
    for (int64_t n = 0; n < f.hidden_size; n += f.group) {
      MultiplyHGrad(f, rows, step, n);
    }
    // Copies x, h_prev and m to the panels that AddWeightGrads reads.
    for (int64_t k = 0; k < GradItems(f, &WeightGrad<T>::PanelItems); ++k) {
      Gather(f, rows, k);
    }
    if (!f.args.x_grad) return;
    for (int64_t n = 0; n < f.input_size; n += kProductColumns<T>) {
      MultiplyXGrad(f, rows, n);
    }
  }

  // Calls use(n) for each group of units.
  template <class F>
  static void ForEachGroup(const Backward<T>& f, const F& use) {
    for (int64_t n = 0; n < f.cell_size; n += f.group) use(n);
  }

  // Fetches x and h_prev of the step before, which is computed next. They lie
  // too far away for the hardware prefetcher.
  static void PrefetchFactors(const Backward<T>& f, const Rows& rows) {
    const PackedRow first = f.At(rows.begin);
    for (int64_t r = 0; r < rows.count(); ++r) {
      const PackedRow at = f.valid.Behind(first, r);
      if (at.previous < 0) continue;
      const PackedRow before = f.valid.Before(at);
      PrefetchToRead(f.X(before), f.input_size);
      PrefetchToRead(f.PreviousH(before), f.hidden_size);
    }
  }

  // dm and the cell's equations of rows of a step, for a group of units from n
  // on.
  static void RunCells(const Backward<T>& f, const Rows& rows, int64_t n) {
    const int64_t n_end = Min(n + f.group, f.cell_size);
    if (f.projected()) MultiplyBack(f, rows, n, n_end);
    ForEachCellRows(f, rows, [&](const PackedRow& first, int64_t count) {
      for (int64_t u = n; u < n_end; u += kL) {
        CellsOfVector(f, rows, first, count, u);
      }
    });
  }

  // One vector of units of a few rows: from the gradients of m and of the state
  // to dz and the gradient of the previous state. Adds to the sums of the
  // biases and peepholes. With a projection, computes m again.
  static void CellsOfVector(const Backward<T>& f, const Rows& rows,
                            PackedRow first, int64_t count, int64_t u) {
    const ParametersAt<T, Cell> parameters(f.args, u);
    const Parameters with = parameters.get();
    V bias_sum[kParts] = {}, peephole_sum[kParts] = {};
    for (int64_t r = 0; r < count; ++r) {
      const PackedRow e = f.valid.Behind(first, r);
      if (e.previous >= 0) PrefetchInputs(f, f.valid.Before(e), u);
      const Outputs y = LoadOutputs(f, e, u, with);
      const V before = PreviousState(f, e, u);
      const typename Cell::Gradients d =
          Cell::Backward(y, before, LoadOutputGrads(f, rows, e, u), with);
      for (int p = 0; p < kParts; ++p) {
        StoreZGrad(f, rows, e.index, p, u, d.z[p]);
        bias_sum[p] = bias_sum[p] + d.z[p];
      }
      if constexpr (Cell::kHasState) {
        StoreN(d.state, f.StateGrad(e) + u, f.cell_size - u);
      }
      if constexpr (Cell::kHasPeephole) {
        for (int p = 0; p < kParts; ++p) {
          const bool is_new = p == Cell::kNewStatePeephole;
          peephole_sum[p] =
              peephole_sum[p] + d.z[p] * (is_new ? y.*Cell::kState : before);
        }
      }
      if constexpr (Cell::kHasOutputGate) {
        if (f.projected()) {
          StoreN(Cell::Hidden(y, with), f.M(rows, e.index) + u,
                 f.cell_size - u);
        }
      }
    }
    for (int p = 0; p < kParts; ++p) {
      Add(bias_sum[p], f.BiasSums(rows.sums, p) + u);
      if (f.args.weights_grad.peephole[p]) {
        Add(peephole_sum[p], f.PeepholeSums(rows.sums, p) + u);
      }
    }
  }

  // The saved activations, and what Restore computes from them.
  TF_LSTM_OPS_INLINE static Outputs LoadOutputs(const Backward<T>& f,
                                                const PackedRow& e, int64_t u,
                                                const Parameters& with) {
    Outputs y = {};
    ForEachSaved<Cell>(
        [&](auto k, auto member) { y.*member = f.Saved(k, e, u); });
    Cell::Restore(&y, f.args.saved.Has(kSavedCo), with);
    if constexpr (Cell::kSavedCount == 0) {  // a vanilla RNN reads h only
      y.h = LoadN(f.args.h + e.output * f.args.h_stride + u, f.cell_size - u);
    }
    return y;
  }

  static V PreviousState(const Backward<T>& f, const PackedRow& e, int64_t u) {
    if (Cell::kHasCellState) return f.PreviousState(kSavedCs, e, u);
    if (!Cell::kHasState) return V{};
    return LoadN(f.PreviousH(e) + u, f.cell_size - u);
  }

  // The gradients of the cell's outputs: of the saved activations where the
  // caller gives them, of m, and of the state from the step after it. A GRU's
  // state is h, so grad.*kState is grad.h.
  TF_LSTM_OPS_INLINE static Outputs LoadOutputGrads(const Backward<T>& f,
                                                    const Rows& rows,
                                                    const PackedRow& e,
                                                    int64_t u) {
    const int64_t width = f.cell_size - u;
    const SavedActivations<const T>& from = f.args.saved_grad;
    Outputs grad = {};
    ForEachSaved<Cell>([&](auto k, auto member) {
      grad.*member = LoadSaved(from, k, e.index, e.output, u, width);
    });
    grad.h = f.projected()
                 ? LoadN(f.MGrad(rows, e.index) + u, width)
                 : LoadN(f.RunningHGrad(e) + u, width) + f.UpstreamH(e, u);
    if constexpr (Cell::kHasState) {
      grad.*Cell::kState =
          LoadN(f.StateGrad(e) + u, width) + grad.*Cell::kState;
    }
    return grad;
  }

  // h = o * co of all packed rows, units [n, end), where it was not given.
  static void RestoreH(const Backward<T>& f, int64_t n, int64_t end) {
    for (int64_t u = n; u < end; u += kL) {
      const ParametersAt<T, Cell> parameters(f.args, u);
      for (int64_t e = 0; e < f.packed_rows; ++e) {
        const V h = Cell::Hidden(LoadOutputs(f, f.At(e), u, parameters.get()),
                                 parameters.get());
        StoreN(h, f.restored_h + e * f.hidden_size + u, f.cell_size - u);
      }
    }
  }

  // The same of what CellsOfVector reads of a packed row, one cache line each.
  static void PrefetchInputs(const Backward<T>& f, const PackedRow& e,
                             int64_t u) {
    constexpr int64_t kLine = 64;  // bytes
    if (u * static_cast<int64_t>(sizeof(T)) % kLine != 0) return;
    const auto prefetch = [u](const auto& from, int k, const PackedRow& at) {
      if (!from.Has(k)) return;
      from.At(k, at.index, at.output, u, [](auto* p) { PrefetchToRead(p); });
    };
    ForEachSaved<Cell>([&](auto k, auto) {
      prefetch(f.args.saved, k, e);
      prefetch(f.args.saved_grad, k, e);
    });
    if (Cell::kHasCellState && e.previous >= 0) {
      prefetch(f.args.saved, kSavedCs, f.valid.Before(e));
    } else if (Cell::kHasState) {
      PrefetchToRead(f.PreviousH(e) + u);
    }
    if (f.args.h_grad) {
      PrefetchToRead(f.args.h_grad + e.output * f.args.h_grad_stride + u);
    }
  }

  static void Add(V value, T* to) { Store(Load(to) + value, to); }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_H_
