// What one thread computes in a step: one unit of one row of the batch, forward
// and backward. Compiled for a cell of core/ and an element type, which these
// macros name:
//
//   TF_LSTM_OPS_CELL  LstmCell, CustomLstmCell, GruCell, TanhCell, ReluCell
//   TF_LSTM_OPS_TYPE  Half, BFloat16, float, double
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_STEP_H_

#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/step_arguments.h"
#include "core/cells.h"

namespace tf_lstm_ops::cuda {
using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;

// Null data reads as zeros and is not written.
__device__ inline T LoadStored(const T* data, int64_t index) {
  return data ? data[index] : T{};
}
__device__ inline C Load(const T* data, int64_t index) {
  return Number<T>::Load(LoadStored(data, index));
}
__device__ inline void Store(C value, T* data, int64_t index) {
  if (data) data[index] = Number<T>::Store(value);
}

// An element of the output: row b of the batch, unit u.
struct Element {
  int64_t b, u;
  bool exists;
};
// The element of this thread, in an output [B, H].
__device__ inline Element ThisElement(const Sequence& sequence,
                                      int64_t cell_size) {
  // The host launches fewer than 2^32 threads; a division of 32 bits is faster.
  const auto thread = static_cast<uint32_t>(Thread());
  const auto units = static_cast<uint32_t>(cell_size);
  const uint32_t b = thread / units;
  return {b, thread - b * units, b < sequence.batch};
}

template <class Cell>
struct CellStep {
  using Outputs = typename Cell::Outputs;
  using Parameters = typename Cell::Parameters;

  // Returns f(parameters of unit u). There is one call for each case, so that
  // the parameters stay in registers.
  template <class F>
  __device__ static auto WithParameters(const CellArguments<T, C>& cell,
                                        int64_t u, const F& f) {
    if constexpr (Cell::kHasPeephole) {
      const C* clip = cell.clip > 0 ? &cell.clip : nullptr;
      if (!cell.has_peephole) {
        return f(Parameters{nullptr, clip, &cell.options});
      }
      C peephole[Cell::kPreActivations];
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        peephole[p] = Load(cell.peephole[p], u);
      }
      return f(Parameters{peephole, clip, &cell.options});
    } else {
      return f(Parameters{});
    }
  }

  // The saved activations of an element, as they are stored.
  struct StoredOutputs {
    T value[Cell::kSavedCount + 1] = {};  // an array must not be empty
  };
  __device__ static StoredOutputs LoadOutputs(
      const SavedActivations<const T>& from, int64_t row, int64_t u) {
    StoredOutputs stored;
    for (int k = 0; k < Cell::kSavedCount; ++k) {
      stored.value[k] = LoadStored(from.data[k], row * from.stride[k] + u);
    }
    return stored;
  }
  template <int k = 0>
  __device__ static void SetOutputs(const StoredOutputs& stored, Outputs* y) {
    if constexpr (k < Cell::kSavedCount) {
      constexpr auto kMember = Cell::kSaved[k];
      y->*kMember = Number<T>::Load(stored.value[k]);
      SetOutputs<k + 1>(stored, y);
    }
  }
  template <int k = 0>
  __device__ static void StoreOutputs(const Outputs& y, int64_t row, int64_t u,
                                      const SavedActivations<T>& to) {
    if constexpr (k < Cell::kSavedCount) {
      constexpr auto kMember = Cell::kSaved[k];
      Store(y.*kMember, to.data[k], row * to.stride[k] + u);
      StoreOutputs<k + 1>(y, row, u, to);
    }
  }
  // Computes the outputs that were not saved.
  __device__ static void Restore(const SavedActivations<const T>& saved,
                                 const Parameters& with, Outputs* y) {
    Cell::Restore(y, Cell::kHasCellState && saved.data[kSavedCo] != nullptr,
                  with);
  }

  // The cell state before step s. A masked step saves the state that it leaves
  // unchanged, so this is always the one of step s - 1.
  template <class Arguments>
  __device__ static T PreviousCellState(const Arguments& a,
                                        const Element& element, int64_t s) {
    if (s == 0) {
      return LoadStored(a.c0.data, element.b * a.c0.stride + element.u);
    }
    const int64_t row = a.sequence.At(element.b, s - 1).output;
    return a.saved.data[kSavedCs][row * a.saved.stride[kSavedCs] + element.u];
  }

  // The values that a forward step reads besides the recurrent product, by
  // pre-activation. They are kept in their stored type: a conversion would wait
  // for the loaded value before the next load is issued. In a masked step only
  // `rows` is set.
  struct ForwardInput {
    Sequence::Step rows;
    C input_product[Cell::kPreActivations];
    C initial_product[Cell::kPreActivations];
    T x[Cell::kPreActivations];
    T input_bias[Cell::kPreActivations], recurrent_bias[Cell::kPreActivations];
    C state;
  };
  __device__ static ForwardInput LoadForward(const ForwardStep<T, C>& a,
                                             int64_t step,
                                             const Element& element) {
    ForwardInput in = {};
    in.rows = a.sequence.At(element.b, step);
    if (!in.rows.valid) return in;
    const int64_t row = in.rows.input, cell_size = a.cell.cell_size;
    const int64_t width = a.cell.gates * cell_size;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const int64_t block = a.cell.block[p];
      const int64_t column = block * cell_size + element.u;
      if (p < Cell::kInputPreActivations) {
        if (a.input_product) {
          in.input_product[p] = a.input_product[row * width + column];
        } else {
          in.x[p] = a.x[row * a.x_stride + block * a.x_gate_stride + element.u];
        }
        in.input_bias[p] = LoadStored(a.input_bias, column);
      }
      if (p >= Cell::kFirstRecurrent) {
        in.recurrent_bias[p] = LoadStored(a.recurrent_bias, column);
      }
      if (step == 0 && a.initial_product) {
        in.initial_product[p] = a.initial_product[element.b * width + column];
      }
    }
    if (Cell::kHasState) in.state = a.state[element.b * cell_size + element.u];
    return in;
  }

  // Sets z to the pre-activations. recurrent_product(block) returns the
  // recurrent product of the gate in a block of the weights.
  template <class RecurrentProduct>
  __device__ static void AddPreActivations(
      const ForwardStep<T, C>& a, const ForwardInput& in,
      const RecurrentProduct& recurrent_product,
      C (&z)[Cell::kPreActivations]) {
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      z[p] = in.input_product[p] + Number<T>::Load(in.x[p]) +
             Number<T>::Load(in.input_bias[p]) + in.initial_product[p];
      if (p >= Cell::kFirstRecurrent) {
        z[p] += recurrent_product(a.cell.block[p]) +
                Number<T>::Load(in.recurrent_bias[p]);
      }
      if (Cell::kHasForgetBias && p == kGateF) z[p] += a.forget_bias;
    }
  }

  __device__ static void StoreDroppedH(const ForwardStep<T, C>& a,
                                       const Element& element, C h) {
    const Multipliers<T>& m = a.dropout;
    const int sets = m.sets(static_cast<int>(a.cell.gates));
    for (int g = 0; a.dropped_h && g < sets; ++g) {
      const C multiplier = Load(m.data, m.Index(g, element.b, element.u));
      Store(h * multiplier, a.dropped_h,
            (g * a.sequence.batch + element.b) * a.cell.cell_size + element.u);
    }
  }

  __device__ static void ComputeMasked(const ForwardStep<T, C>& a, int64_t step,
                                       const Element& element, int64_t row) {
    Outputs y = {};
    if constexpr (Cell::kHasCellState) {
      y.*Cell::kState = a.state[element.b * a.cell.cell_size + element.u];
    }
    StoreOutputs(y, row, element.u, a.saved);
    if (a.fill == Fill::kNothing || a.h == nullptr) return;
    C h = 0;
    if (a.fill == Fill::kPrevious && step > 0) {
      const int64_t previous = a.sequence.At(element.b, step - 1).output;
      h = Load(a.h, previous * a.h_stride + element.u);
    }
    Store(h, a.h, row * a.h_stride + element.u);
  }

  // One forward step. Returns whether it is valid; if so, sets `h`.
  template <class RecurrentProduct>
  __device__ static bool ComputeForward(
      const ForwardStep<T, C>& a, int64_t step, const Element& element,
      const ForwardInput& in, const RecurrentProduct& recurrent_product, C* h) {
    const Sequence::Step& rows = in.rows;
    if (!rows.valid) {
      ComputeMasked(a, step, element, rows.output);
      return false;
    }
    C z[Cell::kPreActivations];
    AddPreActivations(a, in, recurrent_product, z);
    const Outputs y =
        WithParameters(a.cell, element.u, [&](const Parameters& with) {
          return Cell::Forward(z, in.state, with);
        });
    const int64_t b = element.b, u = element.u;
    if constexpr (Cell::kHasState) {
      a.state[b * a.cell.cell_size + u] = y.*Cell::kState;
    }
    if constexpr (Cell::kHasCellState) {
      Store(y.*Cell::kState, a.final_c.data, b * a.final_c.stride + u);
    }
    StoreOutputs(y, rows.output, u, a.saved);
    Store(y.h, a.h, rows.output * a.h_stride + u);
    Store(y.h, a.final_h.data, b * a.final_h.stride + u);
    *h = y.h;
    return true;
  }

  // Stores the gradients of the pre-activations of an input row. Null z_grad
  // counts as zeros. Calls put(column, gradient) for each pre-activation with
  // recurrent weights.
  template <class Put>
  __device__ static void StoreZGrad(const BackwardStep<T, C>& a,
                                    const Element& element, int64_t row,
                                    const C* z_grad, const Put& put) {
    constexpr int kFirst = Cell::kFirstRecurrent;
    const int64_t cell_size = a.cell.cell_size;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const T value = Number<T>::Store(z_grad ? z_grad[p] : C(0));
      const int64_t column = a.cell.block[p] * cell_size + element.u;
      const int64_t index = row * a.cell.gates * cell_size + column;
      if (p < Cell::kInputPreActivations) a.z_grad[index] = value;
      if (p < kFirst || p >= kFirst + Cell::kRecurrentPreActivations) continue;
      if (a.recurrent_z_grad) a.recurrent_z_grad[index] = value;
      put(column, value);
    }
  }

  // The state before a step that the cell's backward equations read.
  __device__ static T PreviousState(const BackwardStep<T, C>& a, int64_t step,
                                    const Element& element, int64_t input_row) {
    if constexpr (Cell::kHasCellState) {
      return PreviousCellState(a, element, step);
    } else if constexpr (Cell::kHasState) {
      return a.previous_h[input_row * a.cell.cell_size + element.u];
    } else {
      return T{};
    }
  }

  // The values that a backward step reads besides the product of the step after
  // it, in their stored type. In a masked step only `rows` and `next_h_grad`
  // are set.
  struct BackwardInput {
    Sequence::Step rows;
    StoredOutputs outputs, outputs_grad;
    T h, h_grad, previous_state;
    C next_h_grad, next_c_grad;
  };
  __device__ static BackwardInput LoadBackward(const BackwardStep<T, C>& a,
                                               int64_t step,
                                               const Element& element) {
    BackwardInput in = {};
    in.rows = a.sequence.At(element.b, step);
    const int64_t state = element.b * a.cell.cell_size + element.u;
    in.next_h_grad = a.next_h_grad[state];
    if (!in.rows.valid) return in;
    const int64_t row = in.rows.output, u = element.u;
    in.outputs = LoadOutputs(a.saved, row, u);
    if constexpr (Cell::kSavedCount == 0) in.h = a.h[row * a.h_stride + u];
    in.outputs_grad = LoadOutputs(a.saved_grad, row, u);
    in.h_grad = LoadStored(a.h_grad, row * a.h_grad_stride + u);
    in.previous_state = PreviousState(a, step, element, in.rows.input);
    if constexpr (Cell::kHasCellState) in.next_c_grad = a.next_c_grad[state];
    return in;
  }

  // One backward step. `recurrent_product` is the gradient of h through the
  // recurrent product of the next step. `put` is that of StoreZGrad.
  template <class Put>
  __device__ static void ComputeBackward(const BackwardStep<T, C>& a,
                                         const Element& element,
                                         const BackwardInput& in,
                                         C recurrent_product, const Put& put) {
    const int64_t state = element.b * a.cell.cell_size + element.u;
    if (!in.rows.valid) {
      a.next_h_grad[state] = in.next_h_grad + recurrent_product;
      return StoreZGrad(a, element, in.rows.input, nullptr, put);
    }
    Outputs grad = {};
    SetOutputs(in.outputs_grad, &grad);
    grad.h = in.next_h_grad + recurrent_product + Number<T>::Load(in.h_grad);
    if constexpr (Cell::kHasCellState) grad.*Cell::kState += in.next_c_grad;
    const auto d =
        WithParameters(a.cell, element.u, [&](const Parameters& with) {
          Outputs y = {};
          SetOutputs(in.outputs, &y);
          if constexpr (Cell::kSavedCount == 0) y.h = Number<T>::Load(in.h);
          Restore(a.saved, with, &y);
          return Cell::Backward(y, Number<T>::Load(in.previous_state), grad,
                                with);
        });
    StoreZGrad(a, element, in.rows.input, d.z, put);
    a.next_h_grad[state] =
        Cell::kHasState && !Cell::kHasCellState ? d.state : C(0);
    if constexpr (Cell::kHasCellState) a.next_c_grad[state] = d.state;
  }

  // h of an output row.
  __device__ static C StepH(const PreviousH<T, C>& a, int64_t row, int64_t u) {
    if constexpr (Cell::kHasOutputGate) {
      if (!a.h) {
        return WithParameters(a.cell, u, [&](const Parameters& with) {
          Outputs y = {};
          SetOutputs(LoadOutputs(a.saved, row, u), &y);
          Restore(a.saved, with, &y);
          return y.o * y.co;
        });
      }
    }
    return Load(a.h, row * a.h_stride + u);
  }

  __device__ static void FindPreviousH(const PreviousH<T, C>& a) {
    const Element element = ThisElement(a.sequence, a.cell.cell_size);
    if (!element.exists) return;
    const int64_t b = element.b, u = element.u;
    C h = Load(a.h0.data, b * a.h0.stride + u);
    for (int64_t s = 0; s < a.sequence.steps; ++s) {
      const Sequence::Step rows = a.sequence.At(b, s);
      Store(rows.valid ? h : C(0), a.previous_h,
            rows.input * a.cell.cell_size + u);
      if (rows.valid) h = StepH(a, rows.output, u);
    }
  }

  __device__ static void SumPeepholes(const PeepholeSums<T, C>& a) {
    const Element element = ThisElement(a.sequence, a.cell.cell_size);
    if (!element.exists) return;
    const int64_t cell_size = a.cell.cell_size, u = element.u;
    C sums[Cell::kPreActivations] = {};
    for (int64_t s = 0; s < a.sequence.steps; ++s) {
      const Sequence::Step rows = a.sequence.At(element.b, s);
      if (!rows.valid) continue;
      const C previous = Number<T>::Load(PreviousCellState(a, element, s));
      const C state = Load(a.saved.data[kSavedCs],
                           rows.output * a.saved.stride[kSavedCs] + u);
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        const int64_t block = rows.input * a.cell.gates + a.cell.block[p];
        sums[p] += Load(a.z_grad, block * cell_size + u) *
                   (p == Cell::kNewStatePeephole ? state : previous);
      }
    }
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      a.sums[(element.b * Cell::kPreActivations + p) * cell_size + u] = sums[p];
    }
  }
};

using Cell = TF_LSTM_OPS_CELL<ScalarMath<C>>;

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_CELL_STEP_H_
