// What a thread does for a unit of a row of the batch. For one cell of core/
// and one type of tensors, which these macros name:
//
//   TF_LSTM_OPS_CELL  LstmCell, CustomLstmCell, GruCell, TanhCell, ReluCell
//   TF_LSTM_OPS_TYPE  Half, BFloat16, float, double
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_

#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/rnn_arguments.h"
#include "core/custom_lstm_cell.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/vanilla_rnn_cell.h"

namespace tf_lstm_ops::cuda {
using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

// Null counts as zeros.
__device__ inline T Stored(const T* data, int64_t at) {
  return data ? data[at] : T{};
}
__device__ inline C Load(const T* data, int64_t at) {
  return Number<T>::Load(Stored(data, at));
}
__device__ inline void Store(C value, T* data, int64_t at) {
  if (data) data[at] = Number<T>::Store(value);
}

// The row of the batch and the unit of a thread, of so many.
struct Place {
  int64_t b, u;
  bool exists;
};
__device__ inline Place ThisPlace(const Sequence& sequence, int64_t cell) {
  // 32 bits: the host launches no more threads, and dividing them is cheaper.
  const auto thread = static_cast<uint32_t>(Thread());
  const uint32_t b = thread / static_cast<uint32_t>(cell);
  return {b, thread - b * static_cast<uint32_t>(cell), b < sequence.batch};
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
      C peephole[Cell::kPreActivations];
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        peephole[p] = Load(cell.peephole[p], u);
      }
      return f(Parameters{peephole, clip, &cell.activations});
    } else {
      return f(Parameters{});
    }
  }

  // The rows that a step keeps, of an output row: as they are stored, then as
  // numbers.
  struct StoredRows {
    T number[Cell::kSavedCount + 1] = {};  // an array is not empty
  };
  __device__ static StoredRows LoadKept(const SavedActivations<const T>& from,
                                        int64_t row, int64_t u) {
    StoredRows stored;
    for (int k = 0; k < Cell::kSavedCount; ++k) {
      stored.number[k] = Stored(from.data[k], row * from.stride[k] + u);
    }
    return stored;
  }
  template <int k = 0>
  __device__ static void SetKept(const StoredRows& stored, Outputs* y) {
    if constexpr (k < Cell::kSavedCount) {
      constexpr auto kMember = Cell::kSaved[k];
      y->*kMember = Number<T>::Load(stored.number[k]);
      SetKept<k + 1>(stored, y);
    }
  }
  template <int k = 0>
  __device__ static void StoreKept(const Outputs& y, int64_t row, int64_t u,
                                   const SavedActivations<T>& to) {
    if constexpr (k < Cell::kSavedCount) {
      constexpr auto kMember = Cell::kSaved[k];
      Store(y.*kMember, to.data[k], row * to.stride[k] + u);
      StoreKept<k + 1>(y, row, u, to);
    }
  }

  // What a step kept, and what follows from it.
  __device__ static Outputs Restored(const SavedActivations<const T>& saved,
                                     int64_t row, int64_t u,
                                     const Parameters& with) {
    Outputs y = {};
    SetKept(LoadKept(saved, row, u), &y);
    Cell::Restore(&y, Cell::kHasCellState && saved.data[kSavedCo] != nullptr,
                  with);
    return y;
  }

  // The cell state before step s. A step without input kept the one before it.
  template <class Arguments>
  __device__ static T StateBefore(const Arguments& a, const Place& at,
                                  int64_t s) {
    if (s == 0) return Stored(a.c0.data, at.b * a.c0.stride + at.u);
    const int64_t row = a.sequence.At(at.b, s - 1).output;
    return a.saved.data[kSavedCs][row * a.saved.stride[kSavedCs] + at.u];
  }

  // What a step forward reads that does not come from the previous output, of
  // the pre-activations by part. As it is stored, so that no load waits for
  // another; only `rows` where the row takes no part.
  struct Input {
    Sequence::Step rows;
    C from_input[Cell::kPreActivations], first[Cell::kPreActivations];
    T x[Cell::kPreActivations], input_bias[Cell::kPreActivations],
        recurrent_bias[Cell::kPreActivations];
    C state;
  };
  __device__ static Input LoadInput(const ForwardStep<T, C>& a, int64_t step,
                                    const Place& at) {
    Input input = {};
    input.rows = a.sequence.At(at.b, step);
    if (!input.rows.valid) return input;
    const int64_t row = input.rows.input, width = a.cell.gates * a.cell.cell;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const int64_t block = a.cell.block[p];
      const int64_t column = block * a.cell.cell + at.u;
      if (p < Cell::kInputPreActivations) {
        if (a.from_input) {
          input.from_input[p] = a.from_input[row * width + column];
        } else {
          input.x[p] = a.x[row * a.x_stride + block * a.x_gate_stride + at.u];
        }
        input.input_bias[p] = Stored(a.input_bias, column);
      }
      if (p >= Cell::kFirstRecurrent) {
        input.recurrent_bias[p] = Stored(a.recurrent_bias, column);
      }
      if (step == 0 && a.first) {
        input.first[p] = a.first[at.b * width + column];
      }
    }
    if (Cell::kHasState) input.state = a.state[at.b * a.cell.cell + at.u];
    return input;
  }
  // The pre-activations. from_h(block): the previous output's share of the gate
  // there.
  template <class FromH>
  __device__ static void AddParts(const ForwardStep<T, C>& a,
                                  const Input& input, const FromH& from_h,
                                  C (&z)[Cell::kPreActivations]) {
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      z[p] = input.from_input[p] + Number<T>::Load(input.x[p]) +
             Number<T>::Load(input.input_bias[p]) + input.first[p];
      if (p >= Cell::kFirstRecurrent) {
        z[p] +=
            from_h(a.cell.block[p]) + Number<T>::Load(input.recurrent_bias[p]);
      }
      if (Cell::kHasForgetBias && p == kGateF) z[p] += a.forget_bias;
    }
  }

  // h as the products of the next step see it, with dropout.
  __device__ static void StoreSeen(const ForwardStep<T, C>& a, const Place& at,
                                   C h) {
    const Multipliers<T>& m = a.dropout;
    const int sets = m.sets(static_cast<int>(a.cell.gates));
    for (int g = 0; a.seen_h && g < sets; ++g) {
      const C keep = Load(m.data, m.Index(g, at.b, at.u));
      Store(h * keep, a.seen_h,
            (g * a.sequence.batch + at.b) * a.cell.cell + at.u);
    }
  }

  // A step without input.
  __device__ static void PassOver(const ForwardStep<T, C>& a, int64_t step,
                                  const Place& at, int64_t row) {
    Outputs y = {};
    if constexpr (Cell::kHasCellState) {
      y.*Cell::kState = a.state[at.b * a.cell.cell + at.u];
    }
    StoreKept(y, row, at.u, a.saved);
    if (a.fill == Fill::kNothing || a.h == nullptr) return;
    C h = 0;
    if (a.fill == Fill::kPrevious && step > 0) {
      const int64_t before = a.sequence.At(at.b, step - 1).output;
      h = Load(a.h, before * a.h_stride + at.u);
    }
    Store(h, a.h, row * a.h_stride + at.u);
  }

  // One step; from_h as above. Returns whether the row takes part, then `h` is
  // the output.
  template <class FromH>
  __device__ static bool Forward(const ForwardStep<T, C>& a, int64_t step,
                                 const Place& at, const Input& input,
                                 const FromH& from_h, C* h) {
    const Sequence::Step& rows = input.rows;
    if (!rows.valid) {
      PassOver(a, step, at, rows.output);
      return false;
    }
    C z[Cell::kPreActivations];
    AddParts(a, input, from_h, z);
    const Outputs y = With(a.cell, at.u, [&](const Parameters& with) {
      return Cell::Forward(z, input.state, with);
    });
    if constexpr (Cell::kHasState) {
      a.state[at.b * a.cell.cell + at.u] = y.*Cell::kState;
    }
    if constexpr (Cell::kHasCellState) {
      Store(y.*Cell::kState, a.last_c.data, at.b * a.last_c.stride + at.u);
    }
    StoreKept(y, rows.output, at.u, a.saved);
    Store(y.h, a.h, rows.output * a.h_stride + at.u);
    Store(y.h, a.last_h.data, at.b * a.last_h.stride + at.u);
    *h = y.h;
    return true;
  }

  // Gradients of the pre-activations of a row of the input, by part, or null
  // for zeros. put(column, dz): those of the parts that come from the previous
  // output.
  template <class Put>
  __device__ static void StoreParts(const BackwardStep<T, C>& a,
                                    const Place& at, int64_t row, const C* dz,
                                    const Put& put) {
    constexpr int kFirst = Cell::kFirstRecurrent;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const T number = Number<T>::Store(dz ? dz[p] : C(0));
      const int64_t column = a.cell.block[p] * a.cell.cell + at.u;
      const int64_t to = row * a.cell.gates * a.cell.cell + column;
      if (p < Cell::kInputPreActivations) a.dz[to] = number;
      if (p < kFirst || p >= kFirst + Cell::kRecurrentPreActivations) continue;
      if (a.dz_h) a.dz_h[to] = number;
      put(column, number);
    }
  }

  // The state before a step, of which the cell's equations take the gradient.
  __device__ static T Before(const BackwardStep<T, C>& a, int64_t step,
                             const Place& at, int64_t input_row) {
    if constexpr (Cell::kHasCellState) {
      return StateBefore(a, at, step);
    } else if constexpr (Cell::kHasState) {
      return a.h_before[input_row * a.cell.cell + at.u];
    } else {
      return T{};
    }
  }

  // What a step backward reads that does not come from the step after it, as it
  // is stored. Only `rows` and `dh` where the row takes no part.
  struct Kept {
    Sequence::Step rows;
    StoredRows y, saved_grad;
    T h, h_grad, before;
    C dh, dc;
  };
  __device__ static Kept LoadKept(const BackwardStep<T, C>& a, int64_t step,
                                  const Place& at) {
    Kept kept = {};
    kept.rows = a.sequence.At(at.b, step);
    const int64_t state = at.b * a.cell.cell + at.u;
    kept.dh = a.dh[state];
    if (!kept.rows.valid) return kept;
    const int64_t row = kept.rows.output;
    kept.y = LoadKept(a.saved, row, at.u);
    if constexpr (Cell::kSavedCount == 0) kept.h = a.h[row * a.h_stride + at.u];
    kept.saved_grad = LoadKept(a.saved_grad, row, at.u);
    kept.h_grad = Stored(a.h_grad, row * a.h_grad_stride + at.u);
    kept.before = Before(a, step, at, kept.rows.input);
    if constexpr (Cell::kHasCellState) kept.dc = a.dc[state];
    return kept;
  }

  // One step. from_h: the gradient of its output by the products of the step
  // after it. put: see StoreParts.
  template <class Put>
  __device__ static void Backward(const BackwardStep<T, C>& a, const Place& at,
                                  const Kept& kept, C from_h, const Put& put) {
    const int64_t state = at.b * a.cell.cell + at.u;
    if (!kept.rows.valid) {
      a.dh[state] = kept.dh + from_h;
      return StoreParts(a, at, kept.rows.input, nullptr, put);
    }
    Outputs grad = {};
    SetKept(kept.saved_grad, &grad);
    grad.h = kept.dh + from_h + Number<T>::Load(kept.h_grad);
    if constexpr (Cell::kHasCellState) grad.*Cell::kState += kept.dc;
    const auto d = With(a.cell, at.u, [&](const Parameters& with) {
      Outputs y = {};
      SetKept(kept.y, &y);
      if constexpr (Cell::kSavedCount == 0) y.h = Number<T>::Load(kept.h);
      Cell::Restore(
          &y, Cell::kHasCellState && a.saved.data[kSavedCo] != nullptr, with);
      return Cell::Backward(y, Number<T>::Load(kept.before), grad, with);
    });
    StoreParts(a, at, kept.rows.input, d.z, put);
    a.dh[state] = Cell::kHasState && !Cell::kHasCellState ? d.state : C(0);
    if constexpr (Cell::kHasCellState) a.dc[state] = d.state;
  }

  // h of an output row.
  __device__ static C StepH(const HBefore<T, C>& a, int64_t row, int64_t u) {
    if constexpr (Cell::kHasCellState) {
      if (!a.h) {
        return With(a.cell, u, [&](const Parameters& with) {
          const Outputs y = Restored(a.saved, row, u, with);
          return y.o * y.co;
        });
      }
    }
    return Load(a.h, row * a.h_stride + u);
  }

  __device__ static void FindHBefore(const HBefore<T, C>& a) {
    const Place at = ThisPlace(a.sequence, a.cell.cell);
    if (!at.exists) return;
    C h = Load(a.h0.data, at.b * a.h0.stride + at.u);
    for (int64_t s = 0; s < a.sequence.steps; ++s) {
      const Sequence::Step rows = a.sequence.At(at.b, s);
      Store(rows.valid ? h : C(0), a.before, rows.input * a.cell.cell + at.u);
      if (rows.valid) h = StepH(a, rows.output, at.u);
    }
  }

  __device__ static void SumPeepholes(const PeepholeSums<T, C>& a) {
    const Place at = ThisPlace(a.sequence, a.cell.cell);
    if (!at.exists) return;
    C sums[Cell::kPreActivations] = {};
    for (int64_t s = 0; s < a.sequence.steps; ++s) {
      const Sequence::Step rows = a.sequence.At(at.b, s);
      if (!rows.valid) continue;
      const C before = Number<T>::Load(StateBefore(a, at, s));
      const C after = Load(a.saved.data[kSavedCs],
                           rows.output * a.saved.stride[kSavedCs] + at.u);
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        const int64_t block = rows.input * a.cell.gates + a.cell.block[p];
        sums[p] += Load(a.dz, block * a.cell.cell + at.u) *
                   (p == Cell::kSeesNewState ? after : before);
      }
    }
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      a.sums[(at.b * Cell::kPreActivations + p) * a.cell.cell + at.u] = sums[p];
    }
  }
};

using Cell = TF_LSTM_OPS_CELL<ScalarMath<C>>;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_PASSES_H_
