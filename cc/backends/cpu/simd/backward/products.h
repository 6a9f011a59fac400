// The products of a backward pass, compiled once for all cells.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PRODUCTS_H_

#include "backends/cpu/simd/backward/state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Rows. The cell's equations compute the units of a group for so many rows
// before the next ones, so that each row's cache lines are used at once. Not
// measured alone.
constexpr int64_t kCellRows = 8;

// Calls use(first, count) for up to kCellRows packed rows of a step at a time.
template <class T, class F>
void ForEachCellRows(const Backward<T>& f, const BackwardRows<T>& rows,
                     const F& use) {
  const PackedRow first = f.At(rows.begin);
  for (int64_t r = 0; r < rows.count(); r += kCellRows) {
    use(f.valid.Behind(first, r), Min(kCellRows, rows.count() - r));
  }
}

// The gradient of h before its clip, by that of h.
template <class T>
TF_LSTM_OPS_INLINE VecT<T> UnclippedHGrad(const Backward<T>& f, VecT<T> grad,
                                          const PackedRow& at, int64_t u) {
  if (!f.args.config.clips_h()) return grad;
  const VecT<T> clip = VecT<T>{} + static_cast<T>(f.args.config.proj_clip);
  const VecT<T> h = LoadN(f.args.unclipped_h + at.index * f.hidden_size + u,
                          f.hidden_size - u);
  return (h > clip) | (h < -clip) ? VecT<T>{} : grad;
}

// With a projection: dh of the rows, for a group of units from n on.
template <class T>
void LoadProjectedHGrad(const Backward<T>& f, const BackwardRows<T>& rows,
                        int64_t n) {
  const int64_t end = Min(n + f.group, f.hidden_size);
  for (int64_t e = rows.begin; e < rows.end; ++e) {
    T* to = f.SecondGrad(rows, e);
    const PackedRow at = f.At(e);
    for (int64_t u = n; u < end; u += f.kL) {
      const int64_t width = f.hidden_size - u;
      const VecT<T> grad =
          LoadN(f.RunningHGrad(at) + u, width) + f.UpstreamH(at, u);
      StoreN(UnclippedHGrad(f, grad, at, u), to + u, width);
    }
  }
}

// dm = dh Wp^T, or dzn R^T of the candidate, of the rows, for units [n, end).
template <class T>
void MultiplyBack(const Backward<T>& f, const BackwardRows<T>& rows, int64_t n,
                  int64_t end) {
  const WeightColumns<T> w = {f.packed_second + n * f.hidden_size,
                              f.hidden_size};
  WithConstant<kColumns>(CeilDiv(end - n, f.kL), [&](auto columns) {
    MultiplyBand<decltype(columns)::value>(
        [&](int64_t e) { return f.SecondGrad(rows, e); }, w,
        {rows.begin, rows.end, end - n},
        [&](int64_t e) { return f.MGrad(rows, e) + n; });
  });
}

// dz of rows as the first factor of a product. The caller sets `to`,
// `to_stride` and `to_input`.
template <class T>
TransposedRows<T> ZGradRows(const Backward<T>& f, const BackwardRows<T>& rows) {
  const int64_t stride =
      f.rounds() ? f.shape.pre_activations * f.CellWords() : f.z_stride;
  const T* z_grad =
      f.rounds() ? rows.chunk->rounded_z_grad : rows.chunk->z_grad;
  return {rows.begin, rows.end, z_grad + rows.first * stride, stride};
}

// dh_prev = dz R^T of the rows of a step, for a group of units from n on.
template <class T>
void MultiplyHGrad(const Backward<T>& f, const BackwardRows<T>& rows,
                   int64_t step, int64_t n) {
  if (step == 0 && !f.args.wants_h0_grad) return;
  TransposedRows<T> of = ZGradRows(f, rows);
  of.to = f.args.h0_grad.data;
  of.to_stride = f.hidden_size;
  f.to_h.Multiply(of, f.packed_recurrent, n);
}

// dx without input weights: dz of the gate that reads a column, or the sum over
// the gates where all gates share the columns.
template <class T>
void CopyXGrad(const Backward<T>& f, const BackwardRows<T>& rows, int64_t n) {
  const int64_t gate_stride = f.args.config.x_gate_stride;
  for (int64_t e = rows.begin; e < rows.end; ++e) {
    T* x = f.args.x_grad + f.At(e).input * f.args.x_stride;
    for (int64_t u = n; u < Min(n + kProductColumns<T>, f.input_size);
         u += f.kL) {
      const int64_t width = f.input_size - u;
      for (int p = 0; p < f.shape.input; ++p) {
        T* to = x + f.GateBlock(p) * gate_stride + u;
        const bool adds = p > 0 && gate_stride == 0;
        StoreN(LoadN(f.ZGrad(rows, e, p) + u, width) +
                   (adds ? LoadN(to, width) : VecT<T>{}),
               to, width);
      }
    }
  }
}

// dx = dz W^T of the rows, kProductColumns columns from n on.
template <class T>
void MultiplyXGrad(const Backward<T>& f, const BackwardRows<T>& rows,
                   int64_t n) {
  if (!f.args.weights.input) return CopyXGrad(f, rows, n);
  TransposedRows<T> of = ZGradRows(f, rows);
  of.to = f.args.x_grad;
  of.to_stride = f.args.x_stride;
  of.to_input = true;
  f.to_x.Multiply(of, f.packed_input, n);
}

// The number of items of all weight gradients, and the gradient k to which an
// item belongs, whose own item it becomes.
template <class T>
using ItemsOfGrad = int64_t (WeightGrad<T>::*)() const;
template <class T>
int64_t GradItems(const Backward<T>& f, ItemsOfGrad<T> items) {
  int64_t sum = 0;
  for (const WeightGrad<T>& grad : f.weight_grads) sum += (grad.*items)();
  return sum;
}
template <class T>
int GradOf(const Backward<T>& f, ItemsOfGrad<T> items, int64_t* item) {
  for (int k = 0;; ++k) {
    const WeightGrad<T>& grad = f.weight_grads[k];
    const int64_t count = (grad.*items)();
    if (*item < count) return k;
    *item -= count;
  }
}

// Copies x, the previous h or m of the rows to panels.
template <class T>
void Gather(const Backward<T>& f, const BackwardRows<T>& rows, int64_t item) {
  const int k = GradOf(f, &WeightGrad<T>::PanelItems, &item);
  const auto row_of = [&](const PackedRow& at) -> const T* {
    if (k == kInputWeights) return f.X(at);
    if (k == kSecond) return f.M(rows, at.index);
    return f.PreviousH(at);
  };
  f.weight_grads[k].Gather(f.valid, {rows.begin, rows.end, rows.first}, item,
                           row_of, rows.chunk->panels[k]);
}

// The factors of weight gradient k, of the first `count` rows of a chunk.
template <class T>
WeightGradFactors<T> FactorsOf(const Backward<T>& f, int k,
                               const BackwardChunk<T>& chunk, int64_t count,
                               bool add) {
  if (k == kSecond && f.projected()) {
    return {chunk.panels[k], chunk.h_grad, f.padded_hidden, count, add};
  }
  const int first = k == kSecond         ? kGateN
                    : k == kInputWeights ? 0
                                         : f.shape.first_recurrent;
  return {chunk.panels[k], chunk.z_grad + first * f.cell_size, f.z_stride,
          count, add};
}

// dW += x^T dz, dR += h_prev^T dz and that of the second product of `count`
// rows of a slice's chunk. The first chunk overwrites the sums.
template <class T>
void AddWeightGrads(const Backward<T>& f, int64_t slice, int thread,
                    int64_t count, bool add) {
  T* sums = f.weight_sums + slice * f.WeightSumsSize();
  for (int k = 0; k < kMatrices; ++k) {
    f.weight_grads[k].AddToSums(
        FactorsOf(f, k, f.chunk_buffers[thread], count, add),
        f.WeightGradScratch(thread), sums);
    sums += f.weight_grads[k].SumsSize();
  }
}

// Where the state is h, adds its gradient to that of the initial h: rows [b,
// b_end) of the batch, units [n, end).
template <class T>
void AddStateGrad(const Backward<T>& f, int64_t b, int64_t b_end, int64_t n,
                  int64_t end) {
  if (!f.shape.has_state || f.shape.has_cell_state) return;
  for (; b < b_end; ++b) {
    for (int64_t u = n; u < end; ++u) {
      const int64_t at = b * f.cell_size + u;
      f.args.h0_grad.data[at] += f.state_grad[at];
    }
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_PRODUCTS_H_
