// The phases of a forward pass, compiled once for all cells. ForwardSchedule
// describes their order.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PHASES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PHASES_H_

#include "backends/cpu/simd/forward/products.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// The units of an item that has `group` of `end` units.
inline Units GroupOf(int64_t group, int64_t item, int64_t end) {
  return {item * group, Min((item + 1) * group, end)};
}

// An item has a group of units, and a part of the rows of x to round.
template <class T>
void Prepare(const Forward<T>& f, int64_t item) {
  const Units units = GroupOf(f.schedule.packing_group(), item, f.padded_size);
  if (!f.is_packed) Pack(f.args, f.packed, units);
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) LoadState(f, u);
  for (int t = 0; item == 0 && f.multiplies_quads() && t < f.threads(); ++t) {
    f.rounded_rows[t * f.kLineWords] = -1;
  }
  if (!f.rounds_x()) return;
  const int64_t count = CeilDiv(f.packed_rows, f.schedule.Items(f.valid, 0));
  const int64_t end = Min((item + 1) * count, f.packed_rows);
  for (int64_t e = item * count; e < end; ++e) {
    CopyX<T>(f, f.X(f.At(e)), nullptr,
             f.rounded_x + e * f.FactorWords(f.input_size));
  }
}

template <class T>
int64_t Items(const Forward<T>& f, int64_t phase) {
  return f.schedule.Items(f.valid, phase);
}

template <class T>
void Run(const Forward<T>& f, int64_t phase, int64_t item, int thread) {
  using Work = ForwardSchedule::Work;
  const ForwardSchedule::Phase at = f.schedule.At(phase);
  const TileScope tiles(f.rounds());
  switch (at.work) {
    case Work::kPrepare:
      return Prepare(f, item);
    case Work::kSlices:
      return f.functions.run_slice(f, item, thread);
    case Work::kCells: {
      // The units and the items of a phase have the same direction; see
      // thread_team.h.
      Units units = GroupOf(f.schedule.group(), item, f.padded_size);
      units.reverse = phase % 2 == 1;
      return f.functions.run_step(f, at.step, units, thread);
    }
    case Work::kRows: {
      ForwardRows<T> row = f.RowsOf(at.step, thread);
      row.z += item * f.z_row();
      row.begin += item;
      row.end = row.begin + 1;
      return f.functions.apply_cell_to_rows(f, row);
    }
    case Work::kProject: {
      const ForwardRows<T> rows = f.RowsOf(at.step, thread);
      RoundRowsOnce(f, rows, at.step, true, thread);
      return FinishFromM(f, rows,
                         GroupOf(f.schedule.group(), item, f.hidden_size));
    }
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_PHASES_H_
