// The parts of a forward pass that do not depend on the cell: its phases, what
// is computed before the steps, and the projection.
#include "backends/cpu/simd/forward_state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

using Phase = ForwardSchedule::Phase;
using Work = ForwardSchedule::Work;

Units GroupOf(const ForwardSchedule& schedule, int64_t item, int64_t end) {
  const int64_t begin = item * schedule.group();
  return {begin, Min(begin + schedule.group(), end)};
}

// Copies a row of x, multiplied by `keep` unless that is null, and rounded if
// f.rounds().
template <class T>
void CopyX(const Forward<T>& f, const T* x, const T* keep, T* to) {
  for (int64_t i = 0; i < f.input_size; i += kLanes<T>) {
    VecT<T> v = LoadN(x + i, f.input_size - i);
    if (keep) v = v * LoadN(keep + i, f.input_size - i);
    StoreFactor(f, v, to, i, f.input_size);
  }
}

// Copies one vector of the initial states.
template <class T>
void LoadState(const Forward<T>& f, int64_t u) {
  const int64_t width = f.cell_size - u, hidden = f.hidden_size;
  const T* initial = f.shape.has_cell_state ? f.args.c0.data : f.args.h0.data;
  for (int64_t b = 0; b < f.batch; ++b) {
    const int64_t at = b * f.cell_size + u;
    if (f.shape.has_state)
      StoreN(LoadN(initial + at, width), f.state + at, width);
    if (f.effective_h_sets() > 0 && u < hidden) {
      const VecT<T> h = LoadN(f.args.h0.data + b * hidden + u, hidden - u);
      StoreEffectiveH(f, h, b, 0, u);
    }
  }
}

// An item has a group of units, and a share of the rows of x to round.
template <class T>
void Prepare(const Forward<T>& f, int64_t item) {
  const Units units = GroupOf(f.schedule, item, f.padded_size);
  if (!f.filled) f.weights.Pack(units.begin, units.end);
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) LoadState(f, u);
  if (!f.rounds_x()) return;
  const int64_t share = Blocks(f.packed_rows, f.schedule.Items(0));
  const int64_t end = Min((item + 1) * share, f.packed_rows);
  for (int64_t e = item * share; e < end; ++e) {
    CopyX<T>(f, f.X(e), nullptr, f.rounded_x + e * f.FactorWords(f.input_size));
  }
}

template <class T>
int64_t Items(const Forward<T>& f, int64_t phase) {
  if (phase == 0 && !f.packs()) return f.single_step.Items();
  return f.schedule.Items(phase);
}

template <class T>
void Run(const Forward<T>& f, int64_t phase, int64_t item, int thread) {
  const Phase at = f.schedule.At(phase);
  switch (at.work) {
    case Work::kPrepare:
      return f.packs() ? Prepare(f, item) : f.single_step.Run(item, thread);
    case Work::kSlices:
      return f.functions.run_slice(f, item, thread);
    case Work::kCells: {
      // The units and the items of a phase have the same direction; see
      // thread_team.h.
      Units units = GroupOf(f.schedule, item, f.padded_size);
      units.reverse = phase % 2 == 1;
      return f.functions.run_step(f, at.step, units, thread);
    }
    case Work::kRows: {
      ForwardRows<T> row = f.RowsOf(at.step);
      row.z += item * f.z_row();
      row.begin += item;
      row.end = row.begin + 1;
      return f.functions.finish_rows(f, row);
    }
    case Work::kProject:
      return ProjectOutput(f, f.RowsOf(at.step),
                           GroupOf(f.schedule, item, f.hidden_size));
  }
}

}  // namespace

template <class T>
Job JobOf(Forward<T>* pass) {
  return {pass, pass->schedule.Phases(),
          [](const void* state, int64_t phase) {
            return Items(*static_cast<const Forward<T>*>(state), phase);
          },
          [](void* state, int64_t phase, int64_t item, int thread) {
            Run(*static_cast<const Forward<T>*>(state), phase, item, thread);
          }};
}

template <class T>
void DropX(const Forward<T>& f, const ForwardRows<T>& rows) {
  T* to = rows.dropped_x;
  for (int64_t e = rows.begin; e < rows.end; ++e) {
    for (int p = 0; p < f.shape.input; ++p) {
      const T* keep = f.args.input_dropout.data +
                      (f.Block(p) * f.batch + f.batch_row[e]) * f.input_size;
      CopyX(f, f.X(e), keep, to);
      to += f.FactorWords(f.input_size);
    }
  }
}

template <class T>
void MultiplySingleStep(const Forward<T>& f, const Units& units, int thread) {
  const auto z_of = [&](int64_t e, int p, int64_t u) {
    return f.z + e * f.z_row() + p * f.padded_size + u;
  };
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    LoadState(f, u);
    for (int p = 0; p < f.shape.input; ++p) {
      const VecT<T> bias = BiasOf(f, p, u);
      for (int64_t e = 0; e < f.packed_rows; ++e) Store(bias, z_of(e, p, u));
    }
  }
  f.single_step.Add(units.begin, units.end, thread, z_of);
}

template <class T>
void ProjectOutput(const Forward<T>& f, const ForwardRows<T>& rows,
                   const Units& units) {
  const int64_t hidden = f.hidden_size;
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    MultiplyBlock<1>([&](int64_t e) { return f.UnprojectedH(e); },
                     WeightColumns<T>{f.weights.projection(u), f.cell_size},
                     {rows.begin, rows.end, hidden - u},
                     [&](int64_t e) { return f.H(e) + u; });
    for (int64_t e = rows.begin; f.effective_h_sets() > 0 && e < rows.end;
         ++e) {
      StoreEffectiveH(f, LoadN(f.H(e) + u, hidden - u), e, u);
    }
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type.
#define TF_LSTM_OPS_INSTANTIATE(T)                                        \
  template Job JobOf(Forward<T>*);                                        \
  template void DropX(const Forward<T>&, const ForwardRows<T>&);          \
  template void MultiplySingleStep(const Forward<T>&, const Units&, int); \
  template void ProjectOutput(const Forward<T>&, const ForwardRows<T>&,   \
                              const Units&)
// NOLINTEND(bugprone-macro-parentheses)
TF_LSTM_OPS_INSTANTIATE(float);
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
TF_LSTM_OPS_INSTANTIATE(double);
#endif

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
