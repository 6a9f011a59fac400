// The steps of an LSTM cell, forward and backward, one launch for each; and
// sums over the steps. Compiled for a cell of core/ and an element type, which
// these macros name:
//
//   TF_LSTM_OPS_CELL  LstmCell, CustomLstmCell
//   TF_LSTM_OPS_TYPE  Half, BFloat16, float, double
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/step_arguments.h"
#include "core/cells.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;
using Cell = TF_LSTM_OPS_CELL<ScalarMath<C>>;
using Outputs = typename Cell::Outputs;
using Parameters = typename Cell::Parameters;
constexpr int kGates = Cell::kGates;

// Null data reads as zeros and is not written.
__device__ inline C Load(const T* data, int64_t index) {
  return data ? Number<T>::Load(data[index]) : C(0);
}
__device__ inline void Store(C value, T* data, int64_t index) {
  if (data) data[index] = Number<T>::Store(value);
}

// The element of this thread in an output [B, H]: row b, unit u.
struct Element {
  int64_t b, u, state;  // state: b * H + u
  bool exists;
};
__device__ inline Element ThisElement(const Sequence& sequence, int64_t units) {
  // The host launches fewer than 2^32 threads; a division of 32 bits is faster.
  const auto thread = static_cast<uint32_t>(Thread());
  const uint32_t b = thread / static_cast<uint32_t>(units);
  return {b, thread - b * units, thread, b < sequence.batch};
}

// Returns f(parameters of unit u). There is one call for each case, so that the
// parameters stay in registers.
template <class F>
__device__ auto WithParameters(const CellArguments<T, C>& cell, int64_t u,
                               const F& f) {
  const C* clip = cell.clip > 0 ? &cell.clip : nullptr;
  if (!cell.has_peephole) return f(Parameters{nullptr, clip, &cell.options});
  C peephole[kGates];
  for (int p = 0; p < kGates; ++p) peephole[p] = Load(cell.peephole[p], u);
  return f(Parameters{peephole, clip, &cell.options});
}

// Saved activations of an element, or the gradients with respect to them.
template <int k = 0>
__device__ void LoadOutputs(const SavedActivations<const T>& from, int64_t row,
                            int64_t u, Outputs* y) {
  if constexpr (k < Cell::kSavedCount) {
    constexpr auto kMember = Cell::kSaved[k];
    y->*kMember = Load(from.data[k], row * from.stride[k] + u);
    LoadOutputs<k + 1>(from, row, u, y);
  }
}
template <int k = 0>
__device__ void StoreOutputs(const Outputs& y, int64_t row, int64_t u,
                             const SavedActivations<T>& to) {
  if constexpr (k < Cell::kSavedCount) {
    constexpr auto kMember = Cell::kSaved[k];
    Store(y.*kMember, to.data[k], row * to.stride[k] + u);
    StoreOutputs<k + 1>(y, row, u, to);
  }
}
// The outputs of a step, with those that were not saved.
__device__ Outputs RestoredOutputs(const SavedActivations<const T>& saved,
                                   int64_t row, int64_t u,
                                   const Parameters& with) {
  Outputs y = {};
  LoadOutputs(saved, row, u, &y);
  Cell::Restore(&y, saved.data[kSavedCo] != nullptr, with);
  return y;
}

// The cell state before step s. A masked step saves the state that it leaves
// unchanged, so this is always the one of step s - 1.
template <class Arguments>
__device__ C PreviousCellState(const Arguments& a, const Element& element,
                               int64_t s) {
  if (s == 0) return Load(a.c0.data, element.b * a.c0.stride + element.u);
  const int64_t row = a.sequence.At(element.b, s - 1).output;
  return Load(a.saved.data[kSavedCs],
              row * a.saved.stride[kSavedCs] + element.u);
}

// Sets z to the pre-activations of a step that reads input row `row`.
__device__ void LoadPreActivations(const ForwardStep<T, C>& a,
                                   const Element& element, int64_t row,
                                   C (&z)[kGates]) {
  const int64_t units = a.cell.cell_size, width = kGates * units;
  for (int p = 0; p < kGates; ++p) {
    const int64_t block = a.cell.block[p];
    const int64_t column = block * units + element.u;
    z[p] = p == kGateF ? a.forget_bias : C(0);
    z[p] +=
        a.input_product
            ? a.input_product[row * width + column]
            : Load(a.x, row * a.x_stride + block * a.x_gate_stride + element.u);
    z[p] += Load(a.bias, column);
    z[p] += a.recurrent_product[element.b * width + column];
  }
}

__device__ void ComputeMasked(const ForwardStep<T, C>& a,
                              const Element& element, int64_t row) {
  Outputs y = {};
  y.cs = a.c[element.state];
  StoreOutputs(y, row, element.u, a.saved);
  if (a.fill == Fill::kNothing || a.h == nullptr) return;
  C h = 0;
  if (a.fill == Fill::kPrevious && a.step > 0) {
    const int64_t previous = a.sequence.At(element.b, a.step - 1).output;
    h = Load(a.h, previous * a.h_stride + element.u);
  }
  Store(h, a.h, row * a.h_stride + element.u);
}

// Stores the gradients of the pre-activations of an input row. Null z_grad
// counts as zeros.
__device__ void StoreZGrad(const BackwardStep<T, C>& a, const Element& element,
                           int64_t row, const C* z_grad) {
  const int64_t units = a.cell.cell_size, width = kGates * units;
  for (int p = 0; p < kGates; ++p) {
    const T value = Number<T>::Store(z_grad ? z_grad[p] : C(0));
    const int64_t column = a.cell.block[p] * units + element.u;
    a.z_grad[row * width + column] = value;
    a.step_z_grad[element.b * width + column] = value;
  }
}

// h of an output row.
__device__ C StepH(const PreviousH<T, C>& a, int64_t row, int64_t u) {
  if (a.h) return Load(a.h, row * a.h_stride + u);
  return WithParameters(a.cell, u, [&](const Parameters& with) {
    return Cell::Hidden(RestoredOutputs(a.saved, row, u, with), with);
  });
}

__device__ void AddPeepholeTerms(const PeepholeSums<T, C>& a,
                                 const Element& element, int64_t s,
                                 C (&sums)[kGates]) {
  const Sequence::Step rows = a.sequence.At(element.b, s);
  if (!rows.valid) return;
  const int64_t u = element.u;
  const C previous = PreviousCellState(a, element, s);
  const C state =
      Load(a.saved.data[kSavedCs], rows.output * a.saved.stride[kSavedCs] + u);
  for (int p = 0; p < kGates; ++p) {
    const int64_t block = rows.input * kGates + a.cell.block[p];
    sums[p] += Load(a.z_grad, block * a.cell.cell_size + u) *
               (p == Cell::kNewStatePeephole ? state : previous);
  }
}

}  // namespace

TF_LSTM_OPS_KERNEL(forward_step, ForwardStep<T, C>) {
  const Element element = ThisElement(a.sequence, a.cell.cell_size);
  if (!element.exists) return;
  const int64_t b = element.b, u = element.u;
  const Sequence::Step rows = a.sequence.At(b, a.step);
  if (!rows.valid) return ComputeMasked(a, element, rows.output);
  C z[kGates];
  LoadPreActivations(a, element, rows.input, z);
  const C c = a.c[element.state];
  const Outputs y = WithParameters(a.cell, u, [&](const Parameters& with) {
    return Cell::Forward(z, c, with);
  });
  a.c[element.state] = y.cs;
  Store(y.cs, a.final_c.data, b * a.final_c.stride + u);
  StoreOutputs(y, rows.output, u, a.saved);
  Store(y.h, a.h, rows.output * a.h_stride + u);
  Store(y.h, a.final_h.data, b * a.final_h.stride + u);
  if (a.dropped_h) {
    Store(y.h * Load(a.dropout.data, a.dropout.Index(0, b, u)), a.dropped_h,
          element.state);
  }
}

TF_LSTM_OPS_KERNEL(backward_step, BackwardStep<T, C>) {
  const Element element = ThisElement(a.sequence, a.cell.cell_size);
  if (!element.exists) return;
  const int64_t b = element.b, u = element.u;
  const Sequence::Step rows = a.sequence.At(b, a.step);
  if (!rows.valid) return StoreZGrad(a, element, rows.input, nullptr);
  Outputs grad = {};
  LoadOutputs(a.saved_grad, rows.output, u, &grad);
  grad.h = a.next_h_grad[element.state] +
           Load(a.h_grad, rows.output * a.h_grad_stride + u);
  grad.cs += a.next_c_grad[element.state];
  const C previous = PreviousCellState(a, element, a.step);
  const auto d = WithParameters(a.cell, u, [&](const Parameters& with) {
    const Outputs y = RestoredOutputs(a.saved, rows.output, u, with);
    return Cell::Backward(y, previous, grad, with);
  });
  StoreZGrad(a, element, rows.input, d.z);
  a.next_h_grad[element.state] = 0;
  a.next_c_grad[element.state] = d.state;
}

TF_LSTM_OPS_KERNEL(previous_h, PreviousH<T, C>) {
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

TF_LSTM_OPS_KERNEL(peephole_sums, PeepholeSums<T, C>) {
  const Element element = ThisElement(a.sequence, a.cell.cell_size);
  if (!element.exists) return;
  C sums[kGates] = {};
  for (int64_t s = 0; s < a.sequence.steps; ++s) {
    AddPeepholeTerms(a, element, s, sums);
  }
  for (int p = 0; p < kGates; ++p) {
    a.sums[(element.b * kGates + p) * a.cell.cell_size + element.u] = sums[p];
  }
}

}  // namespace tf_lstm_ops::cuda
