// The steps of a cell, forward and backward. Compiled for one cell of core/ and
// one type of tensors, which these macros name:
//
//   TF_LSTM_OPS_CELL  LstmCell, GeneralLstmCell, GruCell, TanhCell, ReluCell
//   TF_LSTM_OPS_TYPE  Half, BFloat16, float, double
//
// A thread has a unit of a row of the batch.
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/rnn_arguments.h"
#include "core/general_lstm_cell.h"
#include "core/gru_cell.h"
#include "core/lstm_cell.h"
#include "core/plain_cell.h"

namespace tf_lstm_ops::cuda {
namespace {

using T = TF_LSTM_OPS_TYPE;
using C = typename Number<T>::Compute;
using Cell = TF_LSTM_OPS_CELL<ScalarMath<C>>;
using Outputs = typename Cell::Outputs;

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

// Calls f(k, member of Cell::Outputs) for each row that a step keeps.
template <int k = 0, class F>
__device__ inline void ForEachKept(const F& f) {
  if constexpr (k < Cell::kKeptRows) {
    constexpr auto kMember = Cell::kKept[k];
    f(k, kMember);
    ForEachKept<k + 1>(f);
  }
}

// A cell's parameters for one unit.
class Parameters {
 public:
  __device__ Parameters(const CellArguments<T, C>& cell, int64_t u)
      : cell_(cell) {
    for (int p = 0; cell.has_peephole && p < Cell::kParts; ++p) {
      peephole_[p] = Load(cell.peephole[p], u);
    }
  }
  __device__ typename Cell::Parameters Get() const {
    if constexpr (Cell::kHasPeephole) {
      return {cell_.has_peephole ? peephole_ : nullptr,
              cell_.clip > 0 ? &cell_.clip : nullptr, &cell_.activations};
    } else {
      return {};
    }
  }

 private:
  const CellArguments<T, C>& cell_;
  C peephole_[Cell::kParts] = {};
};

// What a step kept, of an output row, and what follows from it.
__device__ inline Outputs LoadOutputs(const KeptRows<const T>& kept,
                                      int64_t row, int64_t u,
                                      const typename Cell::Parameters& with) {
  Outputs y = {};
  ForEachKept([&](int k, auto member) {
    y.*member = Load(kept.data[k], row * kept.stride[k] + u);
  });
  Cell::Restore(&y, Cell::kOwnState && kept.data[kRowCo] != nullptr, with);
  return y;
}

// The cell state before step s. A step without input kept the one before it.
template <class Arguments>
__device__ inline C StateBefore(const Arguments& a, const Place& at,
                                int64_t s) {
  if (s == 0) return Load(a.c0.data, at.b * a.c0.stride + at.u);
  const int64_t row = a.steps.At(at.b, s - 1).output;
  return Load(a.kept.data[kRowCs], row * a.kept.stride[kRowCs] + at.u);
}

// The pre-activations, by part.
__device__ inline void LoadParts(const ForwardStep<T, C>& a, const Place& at,
                                 int64_t input_row, C (&z)[Cell::kParts]) {
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
      z[p] += a.from_h[at.b * width + column] + Load(a.recurrent_bias, column);
    }
    if (Cell::kHasPeephole && p == kPartF) z[p] += a.forget_bias;
  }
}

// The h of the thread's unit, as the products of the next step see it.
__device__ inline void StoreSeen(const ForwardStep<T, C>& a, const Place& at,
                                 C h) {
  const Multipliers<T>& m = a.dropout;
  const int sets = m.sets(static_cast<int>(a.cell.gates));
  for (int g = 0; a.seen_h && g < sets; ++g) {
    const C keep = Load(m.data, g * m.gate_stride + at.b * m.row_stride +
                                    at.u * m.column_stride);
    Store(h * keep, a.seen_h,
          (g * a.steps.batch + at.b) * a.cell.cell + at.u);
  }
}

__device__ inline void PassOver(const ForwardStep<T, C>& a, const Place& at,
                                int64_t row) {
  ForEachKept([&](int k, auto) {
    const bool is_state = Cell::kOwnState && k == kRowCs;
    Store(is_state ? a.state[at.b * a.cell.cell + at.u] : C(0),
          a.kept.data[k], row * a.kept.stride[k] + at.u);
  });
  if (a.fill == Fill::kNothing || a.h == nullptr) return;
  C h = 0;
  if (a.fill == Fill::kPrevious && a.step > 0) {
    const int64_t before = a.steps.At(at.b, a.step - 1).output;
    h = Load(a.h, before * a.h_stride + at.u);
  }
  Store(h, a.h, row * a.h_stride + at.u);
}

}  // namespace

TF_LSTM_OPS_KERNEL(forward_step, ForwardStep<T, C>) {
  const Place at = ThisPlace(a.steps, a.cell.cell);
  if (!at.exists) return;
  const Steps::Rows rows = a.steps.At(at.b, a.step);
  if (!rows.valid) return PassOver(a, at, rows.output);
  C z[Cell::kParts];
  LoadParts(a, at, rows.input, z);
  C* state =
      Cell::kHasState ? a.state + at.b * a.cell.cell + at.u : nullptr;
  const Parameters with(a.cell, at.u);
  const Outputs y = Cell::Forward(z, state ? *state : C(0), with.Get());
  if constexpr (Cell::kHasState) *state = y.*Cell::kState;
  if constexpr (Cell::kOwnState) {
    Store(*state, a.last_c.data, at.b * a.last_c.stride + at.u);
  }
  ForEachKept([&](int k, auto member) {
    Store(y.*member, a.kept.data[k], rows.output * a.kept.stride[k] + at.u);
  });
  Store(y.h, a.h, rows.output * a.h_stride + at.u);
  Store(y.h, a.last_h.data, at.b * a.last_h.stride + at.u);
  StoreSeen(a, at, y.h);
}

TF_LSTM_OPS_KERNEL(backward_step, BackwardStep<T, C>) {
  const Place at = ThisPlace(a.steps, a.cell.cell);
  if (!at.exists) return;
  const Steps::Rows rows = a.steps.At(at.b, a.step);
  const auto store = [&](T* to, int64_t row, int first, int count,
                         const C* z) {
    for (int p = first; p < first + count; ++p) {
      Store(z ? z[p] : C(0), to,
            (row * a.cell.gates + a.cell.block[p]) * a.cell.cell + at.u);
    }
  };
  const auto store_all = [&](const C* z) {
    store(a.dz, rows.input, 0, Cell::kInputParts, z);
    store(a.dz_h, rows.input, Cell::kFirstRecurrent, Cell::kRecurrentParts, z);
    store(a.dz_step, at.b, Cell::kFirstRecurrent, Cell::kRecurrentParts, z);
  };
  if (!rows.valid) return store_all(nullptr);

  const Parameters parameters(a.cell, at.u);
  const typename Cell::Parameters with = parameters.Get();
  Outputs y = LoadOutputs(a.kept, rows.output, at.u, with);
  if constexpr (Cell::kKeptRows == 0) {
    y.h = Load(a.h, rows.output * a.h_stride + at.u);
  }
  C before = 0;
  if constexpr (Cell::kOwnState) {
    before = StateBefore(a, at, a.step);
  } else if constexpr (Cell::kHasState) {
    before = Load(a.h_before, rows.input * a.cell.cell + at.u);
  }
  Outputs bar = {};
  ForEachKept([&](int k, auto member) {
    bar.*member = Load(a.bar.data[k], rows.output * a.bar.stride[k] + at.u);
  });
  C* dh = a.dh + at.b * a.cell.cell + at.u;
  C* dc = Cell::kOwnState ? a.dc + at.b * a.cell.cell + at.u : nullptr;
  bar.h = *dh + Load(a.h_bar, rows.output * a.h_bar_stride + at.u);
  if constexpr (Cell::kOwnState) bar.*Cell::kState += *dc;

  const typename Cell::Gradients d = Cell::Backward(y, before, bar, with);
  store_all(d.z);
  *dh = Cell::kHasState && !Cell::kOwnState ? d.state : C(0);
  if constexpr (Cell::kOwnState) *dc = d.state;
}

TF_LSTM_OPS_KERNEL(h_before, HBefore<T, C>) {
  const Place at = ThisPlace(a.steps, a.cell.cell);
  if (!at.exists) return;
  const Parameters with(a.cell, at.u);
  C h = Load(a.h0.data, at.b * a.h0.stride + at.u);
  for (int64_t s = 0; s < a.steps.steps; ++s) {
    const Steps::Rows rows = a.steps.At(at.b, s);
    const int64_t to = rows.input * a.cell.cell + at.u;
    Store(rows.valid ? h : C(0), a.before, to);
    if (!rows.valid) continue;
    if (a.h) {
      h = Load(a.h, rows.output * a.h_stride + at.u);
    } else if constexpr (Cell::kOwnState) {
      const Outputs y = LoadOutputs(a.kept, rows.output, at.u, with.Get());
      h = y.o * y.co;
    }
  }
}

TF_LSTM_OPS_KERNEL(peephole_sums, PeepholeSums<T, C>) {
  const Place at = ThisPlace(a.steps, a.cell.cell);
  if (!at.exists) return;
  if constexpr (Cell::kHasPeephole) {
    C sums[Cell::kParts] = {};
    for (int64_t s = 0; s < a.steps.steps; ++s) {
      const Steps::Rows rows = a.steps.At(at.b, s);
      if (!rows.valid) continue;
      const C before = StateBefore(a, at, s);
      const C after = Load(a.kept.data[kRowCs],
                           rows.output * a.kept.stride[kRowCs] + at.u);
      for (int p = 0; p < Cell::kParts; ++p) {
        const int64_t column = a.cell.block[p] * a.cell.cell + at.u;
        const C dz =
            Load(a.dz, rows.input * a.cell.gates * a.cell.cell + column);
        sums[p] += dz * (p == Cell::kSeesNewState ? after : before);
      }
    }
    for (int p = 0; p < Cell::kParts; ++p) {
      a.sums[(at.b * Cell::kParts + p) * a.cell.cell + at.u] = sums[p];
    }
  }
}

}  // namespace tf_lstm_ops::cuda
