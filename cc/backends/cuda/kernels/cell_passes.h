// What a thread does for a unit of a row of the batch. For one cell of core/
// and one type of tensors, which these macros name:
//
//   TF_LSTM_OPS_CELL  LstmCell, GeneralLstmCell, GruCell, TanhCell, ReluCell
//   TF_LSTM_OPS_TYPE  Half, BFloat16, float, double
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_

#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/rnn_arguments.h"
#include "core/general_lstm_cell.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/plain_cell.h"

namespace tf_lstm_ops::cuda {
using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

__device__ inline C Load(const T* data, int64_t at) {
  return data ? Number<T>::Load(data[at]) : C(0);
}
__device__ inline void Store(C value, T* data, int64_t at) {
  if (data) data[at] = Number<T>::Store(value);
}

// The row of the batch and the unit of a thread, of so many.
struct Place {
  int64_t b, u;
  bool exists;
};
__device__ inline Place ThisPlace(const Steps& steps, int64_t cell) {
  // 32 bits: the host launches no more threads, and dividing them is cheaper.
  const auto thread = static_cast<uint32_t>(Thread());
  const uint32_t b = thread / static_cast<uint32_t>(cell);
  return {b, thread - b * static_cast<uint32_t>(cell), b < steps.batch};
}

template <class Cell>
struct Passes {
  using Outputs = typename Cell::Outputs;
  using Parameters = typename Cell::Parameters;

  // f(parameters of one unit). A call for each case, so that they stay in
  // registers.
  template <class F>
  __device__ static auto With(const CellArguments<T, C>& cell, int64_t u,
                              const F& f) {
    if constexpr (Cell::kHasPeephole) {
      const C* clip = cell.clip > 0 ? &cell.clip : nullptr;
      if (!cell.has_peephole) {
        return f(Parameters{nullptr, clip, &cell.activations});
      }
      C peephole[Cell::kParts];
      for (int p = 0; p < Cell::kParts; ++p) {
        peephole[p] = Load(cell.peephole[p], u);
      }
      return f(Parameters{peephole, clip, &cell.activations});
    } else {
      return f(Parameters{});
    }
  }

  // The rows that a step keeps, of an output row.
  template <int k = 0>
  __device__ static void LoadKept(const KeptRows<const T>& from, int64_t row,
                                  int64_t u, Outputs* y) {
    if constexpr (k < Cell::kKeptRows) {
      constexpr auto kMember = Cell::kKept[k];
      y->*kMember = Load(from.data[k], row * from.stride[k] + u);
      LoadKept<k + 1>(from, row, u, y);
    }
  }
  template <int k = 0>
  __device__ static void StoreKept(const Outputs& y, int64_t row, int64_t u,
                                   const KeptRows<T>& to) {
    if constexpr (k < Cell::kKeptRows) {
      constexpr auto kMember = Cell::kKept[k];
      Store(y.*kMember, to.data[k], row * to.stride[k] + u);
      StoreKept<k + 1>(y, row, u, to);
    }
  }

  // What a step kept, and what follows from it.
  __device__ static Outputs Restored(const KeptRows<const T>& kept, int64_t row,
                                     int64_t u, const Parameters& with) {
    Outputs y = {};
    LoadKept(kept, row, u, &y);
    Cell::Restore(&y, Cell::kOwnState && kept.data[kRowCo] != nullptr, with);
    return y;
  }

  // The cell state before step s. A step without input kept the one before it.
  template <class Arguments>
  __device__ static C StateBefore(const Arguments& a, const Place& at,
                                  int64_t s) {
    if (s == 0) return Load(a.c0.data, at.b * a.c0.stride + at.u);
    const int64_t row = a.steps.At(at.b, s - 1).output;
    return Load(a.kept.data[kRowCs], row * a.kept.stride[kRowCs] + at.u);
  }

  // The pre-activations, by part. from_h(block): the previous output's
  // share of the gate there.
  template <class FromH>
  __device__ static void LoadParts(const ForwardStep<T, C>& a, int64_t step,
                                   const Place& at, int64_t input_row,
                                   const FromH& from_h, C (&z)[Cell::kParts]) {
    const int64_t width = a.cell.gates * a.cell.cell;
    for (int p = 0; p < Cell::kParts; ++p) {
      const int64_t column = a.cell.block[p] * a.cell.cell + at.u;
      z[p] = 0;
      if (p < Cell::kInputParts) {
        z[p] = a.from_input
                   ? a.from_input[input_row * width + column]
                   : Load(a.x, input_row * a.x_stride +
                                   a.cell.block[p] * a.x_gate_stride + at.u);
        z[p] += Load(a.input_bias, column);
      }
      if (p >= Cell::kFirstRecurrent) {
        z[p] += from_h(a.cell.block[p]) + Load(a.recurrent_bias, column);
      }
      if (step == 0 && a.first) z[p] += a.first[at.b * width + column];
      if (Cell::kHasPeephole && p == kPartF) z[p] += a.forget_bias;
    }
  }

  // h as the products of the next step see it, with dropout.
  __device__ static void StoreSeen(const ForwardStep<T, C>& a, const Place& at,
                                   C h) {
    const Multipliers<T>& m = a.dropout;
    const int sets = m.sets(static_cast<int>(a.cell.gates));
    for (int g = 0; a.seen_h && g < sets; ++g) {
      const C keep = Load(m.data, m.At(g, at.b, at.u));
      Store(h * keep, a.seen_h,
            (g * a.steps.batch + at.b) * a.cell.cell + at.u);
    }
  }

  // A step without input.
  __device__ static void PassOver(const ForwardStep<T, C>& a, int64_t step,
                                  const Place& at, int64_t row) {
    Outputs y = {};
    if constexpr (Cell::kOwnState) {
      y.*Cell::kState = a.state[at.b * a.cell.cell + at.u];
    }
    StoreKept(y, row, at.u, a.kept);
    if (a.fill == Fill::kNothing || a.h == nullptr) return;
    C h = 0;
    if (a.fill == Fill::kPrevious && step > 0) {
      const int64_t before = a.steps.At(at.b, step - 1).output;
      h = Load(a.h, before * a.h_stride + at.u);
    }
    Store(h, a.h, row * a.h_stride + at.u);
  }

  // One step. Returns whether it has input, then `h` is the output.
  template <class FromH>
  __device__ static bool Forward(const ForwardStep<T, C>& a, int64_t step,
                                 const Place& at, const FromH& from_h, C* h) {
    const Steps::Rows rows = a.steps.At(at.b, step);
    if (!rows.valid) {
      PassOver(a, step, at, rows.output);
      return false;
    }
    C z[Cell::kParts];
    LoadParts(a, step, at, rows.input, from_h, z);
    C* state = Cell::kHasState ? a.state + at.b * a.cell.cell + at.u : nullptr;
    const Outputs y = With(a.cell, at.u, [&](const Parameters& with) {
      return Cell::Forward(z, state ? *state : C(0), with);
    });
    if constexpr (Cell::kHasState) *state = y.*Cell::kState;
    if constexpr (Cell::kOwnState) {
      Store(*state, a.last_c.data, at.b * a.last_c.stride + at.u);
    }
    StoreKept(y, rows.output, at.u, a.kept);
    Store(y.h, a.h, rows.output * a.h_stride + at.u);
    Store(y.h, a.last_h.data, at.b * a.last_h.stride + at.u);
    *h = y.h;
    return true;
  }

  // z: by part, or null for zeros.
  __device__ static void StoreParts(const BackwardStep<T, C>& a, const C* z,
                                    int first, int count, int64_t row,
                                    int64_t u, T* to) {
    for (int p = first; p < first + count; ++p) {
      Store(z ? z[p] : C(0), to,
            (row * a.cell.gates + a.cell.block[p]) * a.cell.cell + u);
    }
  }
  __device__ static void StoreParts(const BackwardStep<T, C>& a,
                                    const Place& at, int64_t row, const C* z,
                                    T* dz_step) {
    constexpr int kFirst = Cell::kFirstRecurrent;
    constexpr int kCount = Cell::kRecurrentParts;
    StoreParts(a, z, 0, Cell::kInputParts, row, at.u, a.dz);
    StoreParts(a, z, kFirst, kCount, row, at.u, a.dz_h);
    StoreParts(a, z, kFirst, kCount, 0, at.u, dz_step);
  }

  // The state before a step, of which the cell's equations take the gradient.
  __device__ static C Before(const BackwardStep<T, C>& a, int64_t step,
                             const Place& at, int64_t input_row) {
    if constexpr (Cell::kOwnState) {
      return StateBefore(a, at, step);
    } else if constexpr (Cell::kHasState) {
      return Load(a.h_before, input_row * a.cell.cell + at.u);
    } else {
      return 0;
    }
  }

  // One step. dz_step: this row of the batch in the gradients of the
  // pre-activations that the product with the recurrent weights takes, [G*H].
  __device__ static void Backward(const BackwardStep<T, C>& a, int64_t step,
                                  const Place& at, T* dz_step) {
    const Steps::Rows rows = a.steps.At(at.b, step);
    if (!rows.valid) return StoreParts(a, at, rows.input, nullptr, dz_step);
    C* dh = a.dh + at.b * a.cell.cell + at.u;
    C* dc = Cell::kOwnState ? a.dc + at.b * a.cell.cell + at.u : nullptr;
    Outputs bar = {};
    LoadKept(a.bar, rows.output, at.u, &bar);
    bar.h = *dh + Load(a.h_bar, rows.output * a.h_bar_stride + at.u);
    if constexpr (Cell::kOwnState) bar.*Cell::kState += *dc;
    const auto d = With(a.cell, at.u, [&](const Parameters& with) {
      Outputs y = Restored(a.kept, rows.output, at.u, with);
      if constexpr (Cell::kKeptRows == 0) {
        y.h = Load(a.h, rows.output * a.h_stride + at.u);
      }
      return Cell::Backward(y, Before(a, step, at, rows.input), bar, with);
    });
    StoreParts(a, at, rows.input, d.z, dz_step);
    *dh = Cell::kHasState && !Cell::kOwnState ? d.state : C(0);
    if constexpr (Cell::kOwnState) *dc = d.state;
  }

  // h of an output row.
  __device__ static C StepH(const HBefore<T, C>& a, int64_t row, int64_t u) {
    if constexpr (Cell::kOwnState) {
      if (!a.h) {
        return With(a.cell, u, [&](const Parameters& with) {
          const Outputs y = Restored(a.kept, row, u, with);
          return y.o * y.co;
        });
      }
    }
    return Load(a.h, row * a.h_stride + u);
  }

  __device__ static void FindHBefore(const HBefore<T, C>& a) {
    const Place at = ThisPlace(a.steps, a.cell.cell);
    if (!at.exists) return;
    C h = Load(a.h0.data, at.b * a.h0.stride + at.u);
    for (int64_t s = 0; s < a.steps.steps; ++s) {
      const Steps::Rows rows = a.steps.At(at.b, s);
      Store(rows.valid ? h : C(0), a.before, rows.input * a.cell.cell + at.u);
      if (rows.valid) h = StepH(a, rows.output, at.u);
    }
  }

  __device__ static void SumPeepholes(const PeepholeSums<T, C>& a) {
    const Place at = ThisPlace(a.steps, a.cell.cell);
    if (!at.exists) return;
    C sums[Cell::kParts] = {};
    for (int64_t s = 0; s < a.steps.steps; ++s) {
      const Steps::Rows rows = a.steps.At(at.b, s);
      if (!rows.valid) continue;
      const C before = StateBefore(a, at, s);
      const C after =
          Load(a.kept.data[kRowCs], rows.output * a.kept.stride[kRowCs] + at.u);
      for (int p = 0; p < Cell::kParts; ++p) {
        const int64_t block = rows.input * a.cell.gates + a.cell.block[p];
        sums[p] += Load(a.dz, block * a.cell.cell + at.u) *
                   (p == Cell::kSeesNewState ? after : before);
      }
    }
    for (int p = 0; p < Cell::kParts; ++p) {
      a.sums[(at.b * Cell::kParts + p) * a.cell.cell + at.u] = sums[p];
    }
  }
};

using Cell = TF_LSTM_OPS_CELL<ScalarMath<C>>;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_
