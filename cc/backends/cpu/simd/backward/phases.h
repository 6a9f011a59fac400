// The phases of a backward pass, compiled once for all cells.
// backward_schedule.h describes their order.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PHASES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PHASES_H_

#include <algorithm>

#include "backends/cpu/simd/backward/products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Packs the weights, and clears what is added to. Items: groups of units; then
// groups of columns of x.
template <class T>
void Prepare(const Backward<T>& f, int64_t item) {
  const int64_t groups = CeilDiv(f.cell_size, f.group);
  if (item >= groups) {
    return f.to_x.Pack((item - groups) * kProductColumns<T>, f.packed_input);
  }
  const int64_t n = item * f.group;
  const int64_t end = Min(n + f.group, f.padded_size);
  for (int64_t k = 0; f.schedule.slices() == 0 && k < f.SumSets(); ++k) {
    f.ClearSums(f.sums + k * f.SumsSize(), n, end);
  }
  if (f.shape.has_state && !f.shape.has_cell_state) {
    for (int64_t b = 0; b < f.batch; ++b) {
      T* state = f.state_grad + b * f.cell_size;
      std::fill(state + n, state + Min(end, f.cell_size), T(0));
    }
  }
  if (f.restores_h()) f.functions.restore_h(f, n, Min(end, f.cell_size));
  if (f.needs_h_grad()) f.to_h.Pack(n, f.packed_recurrent);
  if (!f.multiplies_m()) return;
  const RnnWeights<const T>& weights = f.args.weights;
  const GateMatrices<const T>& w =
      f.projected() ? weights.projection : weights.recurrent;
  w.Read(f.projected() ? 0 : f.GateBlock(kGateN), [&](const auto* data) {
    PackGroup(PackedFrom{data, w.column_stride, w.row_stride, f.hidden_size,
                         f.cell_size},
              n, Min(end, f.cell_size), f.packed_second + n * f.hidden_size,
              WeightFormat::kElements);
  });
}

// The products of a chunk without slices: first those of the weights, then dx.
template <class T>
int64_t ProductItems(const Backward<T>& f, int64_t chunk) {
  const int64_t of_x_grad =
      CeilDiv(f.RowsOfChunk(chunk).count(), kProductRows) *
      CeilDiv(f.input_size, kProductColumns<T>);
  return GradItems(f, &WeightGrad<T>::Items) + (f.args.x_grad ? of_x_grad : 0);
}
template <class T>
void MultiplyChunk(const Backward<T>& f, int64_t chunk, int64_t item,
                   int thread) {
  const BackwardRows<T> rows = f.RowsOfChunk(chunk);
  const int64_t of_weights = GradItems(f, &WeightGrad<T>::Items);
  if (item < of_weights) {
    const int k = GradOf(f, &WeightGrad<T>::Items, &item);
    return f.weight_grads[k].Run(
        FactorsOf(f, k, *rows.chunk, rows.count(), chunk > 0), item,
        f.WeightGradScratch(thread));
  }
  item -= of_weights;
  const int64_t columns = CeilDiv(f.input_size, kProductColumns<T>);
  const int64_t e = rows.begin + item / columns * kProductRows;
  MultiplyXGrad(f, rows.From(e, Min(e + kProductRows, rows.end)),
                item % columns * kProductColumns<T>);
}

// A band of rows of a step, of a cell that reduces rows, without slices. The
// sums of the bands are added at the end, so they do not depend on the number
// of threads.
template <class T>
void RunBand(const Backward<T>& f, const BackwardRows<T>& rows, int64_t band,
             int thread) {
  const int64_t begin = rows.begin + band * f.schedule.band_rows();
  const int64_t end = Min(begin + f.schedule.band_rows(), rows.end);
  if (begin >= end) return;
  BackwardRows<T> some = rows.From(begin, end);
  some.sums += band * f.SumsSize();
  f.functions.run_rows(f, some, thread);
}

// A phase of a step without slices, for a group of units from n on. In steps of
// one phase kHiddenGrad also computes the cells.
template <class T>
void RunStep(const Backward<T>& f, const BackwardSchedule::Phase& at,
             int64_t item, int thread) {
  using Work = BackwardSchedule::Work;
  const BackwardRows<T> rows = f.RowsOf(at.chunk, at.step);
  const int64_t n = item * f.group;
  if (at.work == Work::kHiddenGrad) {
    if (at.step + 1 < f.steps) {
      MultiplyHGrad(f, f.RowsOf(at.chunk, at.step + 1), at.step + 1, n);
    }
    if (f.shape.reduces_rows) return;
    if (f.projected()) return LoadProjectedHGrad(f, rows, n);
    if (f.shape.resets_before) return f.functions.begin_cells(f, rows, n);
  }
  if (f.shape.reduces_rows) return RunBand(f, rows, item, thread);
  f.functions.run_cells(f, rows, n);
}

template <class T>
void WriteSums(const Backward<T>& f, int64_t u) {
  if (f.functions.write_sums) return f.functions.write_sums(f, u);
  const RnnWeights<T>& to = f.args.weights_grad;
  for (int p = 0; p < f.shape.pre_activations; ++p) {
    const int64_t at = f.GateBlock(p) * f.cell_size;
    if (to.input_bias && p < f.shape.input) {
      WriteTotal(f, f.BiasSums(f.sums, p), u, to.input_bias + at);
    }
    if (to.recurrent_bias && p >= f.shape.first_recurrent) {
      WriteTotal(f, f.BiasSums(f.sums, p), u, to.recurrent_bias + at);
    }
    WriteTotal(f, f.PeepholeSums(f.sums, p), u, to.peephole[p]);
  }
}

// Writes row `item` of the weight gradients: the totals of the slices.
template <class T>
void WriteWeightTotals(const Backward<T>& f, int64_t item) {
  const int k = GradOf(f, &WeightGrad<T>::TotalItems, &item);
  const T* sums = f.weight_sums;
  for (int before = 0; before < k; ++before) {
    sums += f.weight_grads[before].SumsSize();
  }
  f.weight_grads[k].WriteTotal(sums, f.WeightSumsSize(), f.schedule.slices(),
                               item);
}

// Writes the sums over all steps. Items: groups of units; with slices, also
// rows of the weights.
template <class T>
void Finish(const Backward<T>& f, int64_t item) {
  const int64_t groups = CeilDiv(f.padded_size, f.group);
  if (item >= groups) {
    return WriteWeightTotals(f, item - groups);
  }
  const int64_t n = item * f.group;
  const int64_t end = Min(n + f.group, f.cell_size);
  if (f.schedule.slices() == 0) {
    const int64_t last = f.schedule.chunks() - 1;
    if (f.steps > 0) MultiplyHGrad(f, f.RowsOf(last, 0), 0, n);
    AddStateGrad(f, 0, f.batch, n, end);
  }
  for (int64_t u = n; u < end; u += f.kL) WriteSums(f, u);
}

template <class T>
int64_t Items(const Backward<T>& f, int64_t phase) {
  using Work = BackwardSchedule::Work;
  const BackwardSchedule::Phase at = f.schedule.At(phase);
  switch (at.work) {
    case Work::kPrepare:
      return CeilDiv(f.cell_size, f.group) +
             (f.multiplies_x_grad() ? CeilDiv(f.input_size, kProductColumns<T>)
                                    : 0);
    case Work::kSlices:
      return f.schedule.slices();
    case Work::kHiddenGrad:
    case Work::kCells:
      if (at.step < f.schedule.StepsOf(at.chunk).begin) return 0;
      if (at.work == Work::kCells && f.shape.reduces_rows) {
        return f.schedule.bands();
      }
      return CeilDiv(at.work == Work::kHiddenGrad && f.projected()
                         ? f.padded_hidden
                         : f.padded_size,
                     f.group);
    case Work::kGather:
      return GradItems(f, &WeightGrad<T>::PanelItems);
    case Work::kProducts:
      return ProductItems(f, at.chunk);
    case Work::kFinish:
      return CeilDiv(f.padded_size, f.group) +
             (f.schedule.slices() > 0 ? GradItems(f, &WeightGrad<T>::TotalItems)
                                      : 0);
  }
  return 0;
}

template <class T>
void Run(const Backward<T>& f, int64_t phase, int64_t item, int thread) {
  using Work = BackwardSchedule::Work;
  const BackwardSchedule::Phase at = f.schedule.At(phase);
  const TileScope tiles(f.rounds());
  switch (at.work) {
    case Work::kPrepare:
      return Prepare(f, item);
    case Work::kSlices:
      return f.functions.run_slice(f, item, thread);
    case Work::kHiddenGrad:
    case Work::kCells:
      return RunStep(f, at, item, thread);
    case Work::kGather:
      for (int64_t step = f.schedule.StepsOf(at.chunk).begin;
           step < f.schedule.StepsOf(at.chunk).end; ++step) {
        Gather(f, f.RowsOf(at.chunk, step), item);
      }
      return;
    case Work::kProducts:
      return MultiplyChunk(f, at.chunk, item, thread);
    case Work::kFinish:
      return Finish(f, item);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PHASES_H_
