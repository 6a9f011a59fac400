// OneStep: a call with one step, whose weights are used once, so they are read
// where they lie and not packed. README.md says which calls it serves.
//
// It has two phases. With few rows, the first one computes the sums of single
// chains of the weights. The second one adds them to the biases, or computes
// all products, and then the cell's equations, for a group of units.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_STEP_H_

#include "backends/cpu/forward_engine.h"
#include "backends/cpu/memory/scratch.h"
#include "backends/cpu/simd/forward/packed_layer.h"
#include "backends/cpu/simd/vector/cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// z = x W + h R + bias, m and the states of one step of a cell whose gates all
// see both products.
template <class T>
struct OneStep {
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  // Units of an item with few rows: 4 KiB of a row of float weights, a page.
  static constexpr int64_t kPageGroup = 1024;
  static constexpr int64_t kCopy = kChain * kColumns * kL;

  // The cell's equations of units [begin, end).
  using ApplyCell = void (*)(const OneStep&, Units units);

  OneStep(const PlannedForward<T>& pass, ApplyCell apply_cell)
      : args(*pass.layer),
        apply_cell(apply_cell),
        plan(pass.plan),
        shape(CellShapeOf(args.config.cell)),
        gates(GateCount(args.config.cell)),
        cell_size(args.config.cell_size),
        padded_size(RoundUpToLanes<T>(cell_size)),
        rows(args.valid->size()),
        input_chains(CeilDiv(args.config.input_size, kChain)),
        chains(input_chains + CeilDiv(args.config.hidden_size, kChain)) {}

  int threads() const { return plan.threads; }
  static int64_t Phases() { return 2; }

  void Place(cpu::Scratch<T>* scratch, int threads) {
    z = scratch->Take(rows * gates * padded_size);
    sums =
        scratch->Take(has_few_rows() ? chains * gates * rows * padded_size : 0);
    copies = scratch->Take(threads * kCopy);
  }

  // With few rows, a separate phase computes the sums of the chains. An item is
  // a group of units of a gate.
  bool has_few_rows() const { return rows <= kRows; }
  int64_t ChainItems() const {
    return has_few_rows() ? chains * gates * CeilDiv(padded_size, kPageGroup)
                          : 0;
  }
  void RunChain(int64_t item, int thread) const {
    const int64_t groups = CeilDiv(padded_size, kPageGroup);
    const int64_t u = item % groups * kPageGroup;
    const Chain chain = ChainOf(item / groups, u);
    const int64_t end = Min(u + kPageGroup, padded_size);
    const int64_t whole = Min(end, cell_size / kL * kL);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = u; v < end; v += kL) Store(V{}, Sum(chain, r) + v);
    }
    if (u < whole) AddRows(chain, whole);
    if (whole < end) {
      Chain rest = chain;
      rest.unit = whole;
      AddColumns<1>(rest, thread,
                    [&](int64_t r) { return Sum(chain, r) + whole; });
    }
  }

  // All of a group of units.
  void RunUnits(const Units& units, int thread) const {
    for (int64_t u = units.begin; u < units.end; u += kL) {
      for (int p = 0; p < gates; ++p) {
        const V bias = BiasOf(args, shape, p, u);
        for (int64_t r = 0; r < rows; ++r) Store(bias, Z(r, p, u));
      }
    }
    AddProducts(units, thread);
    KeepStates(units);
    apply_cell(*this, units);
  }

  T* Z(int64_t row, int part, int64_t u) const {
    return z + (row * gates + part) * padded_size + u;
  }

  const EngineForward<T>& args;
  const ApplyCell apply_cell;
  const cpu::ForwardPlan& plan;
  const CellShape shape;
  const int64_t gates;
  const int64_t cell_size, padded_size;
  const int64_t rows;  // of the batch
  const int64_t input_chains, chains;
  T* z = nullptr;       // [rows, gates, padded_size]
  T* sums = nullptr;    // [chains, gates, rows, padded_size]
  T* copies = nullptr;  // [threads, kChain, kColumns, lanes]

 private:
  // Adds the products to z.
  void AddProducts(const Units& units, int thread) const {
    for (int64_t index = 0; index < chains * gates; ++index) {
      Chain chain = ChainOf(index, units.begin);
      if (has_few_rows()) {
        AddSums(chain, units.end);
        continue;
      }
      for (; chain.unit < units.end; chain.unit += kColumns * kL) {
        WithConstant<kColumns>(
            (units.end - chain.unit) / kL, [&](auto vectors) {
              AddColumns<decltype(vectors)::value>(
                  chain, thread,
                  [&](int64_t r) { return Z(r, chain.part, chain.unit); });
            });
      }
    }
  }

  // Rows of the batch whose step is masked keep their cell state.
  void KeepStates(const Units& units) const {
    if (!args.final_c.data || args.valid->is_full()) return;
    for (int64_t b = 0; b < args.valid->batch; ++b) {
      for (int64_t u = units.begin; u < Min(units.end, cell_size); u += kL) {
        const int64_t at = b * cell_size + u;
        StoreN(LoadN(args.c0.data + at, cell_size - u), args.final_c.data + at,
               cell_size - u);
      }
    }
  }

  // A chain of a gate, from a unit on: up to kChain rows of W or R.
  struct Chain {
    int64_t index;  // chain, gate
    int part;
    bool recurrent;
    int64_t row, depth;
    int64_t unit;
  };
  Chain ChainOf(int64_t index, int64_t unit) const {
    const int64_t number = index / gates;
    const bool recurrent = number >= input_chains;
    const int64_t row = (number - (recurrent ? input_chains : 0)) * kChain;
    const int64_t depth =
        recurrent ? args.config.hidden_size : args.config.input_size;
    return {index, static_cast<int>(index % gates), recurrent,
            row,   Min(kChain, depth - row),        unit};
  }

  const GateMatrices<const T>& Matrix(const Chain& chain) const {
    return chain.recurrent ? args.weights.recurrent : args.weights.input;
  }
  // Calls use(b) with a pointer to the first element of a chain's weights.
  template <class F>
  void WithWeights(const Chain& chain, const F& use) const {
    const GateMatrices<const T>& w = Matrix(chain);
    w.Read(args.config.gate_order.block[chain.part], [&](const auto* data) {
      use(data + chain.row * w.row_stride + chain.unit);
    });
  }
  // The row of x or h that is multiplied with a chain.
  const T* Factors(const Chain& chain, int64_t r) const {
    const PackedSequence& of = *args.valid;
    return chain.row +
           (chain.recurrent
                ? args.h0.data + of.At(r).batch * args.config.hidden_size
                : args.x + of.At(r).input * args.x_stride);
  }
  T* Sum(const Chain& chain, int64_t r) const {
    return sums + (chain.index * rows + r) * padded_size;
  }

  // Adds units [chain.unit, end) to the sums of a chain.
  void AddRows(const Chain& chain, int64_t end) const {
    WithConstant<kRows>(rows, [&](auto count) {
      constexpr int R = decltype(count)::value;
      constexpr int kOuterDepth = OuterDepth(R);
      const int64_t stride = Matrix(chain).row_stride;
      const auto add = [&](int64_t k, auto depth) {
        const T* a[R];
        T* to[R];
        for (int r = 0; r < R; ++r) {
          a[r] = Factors(chain, r) + k;
          to[r] = Sum(chain, r) + chain.unit;
        }
        WithWeights(chain, [&](const auto* b) {
          AddOuter<T, R, decltype(depth)::value>(a, b + k * stride, stride,
                                                 (end - chain.unit) / kL, to);
        });
      };
      int64_t k = 0;
      for (; k + kOuterDepth <= chain.depth; k += kOuterDepth) {
        add(k, std::integral_constant<int, kOuterDepth>{});
      }
      for (; k < chain.depth; ++k) add(k, std::integral_constant<int, 1>{});
    });
  }

  void AddSums(const Chain& chain, int64_t end) const {
    for (int64_t r = 0; r < rows; ++r) {
      const T* sum = Sum(chain, r);
      for (int64_t u = chain.unit; u < end; u += kL) {
        T* to = Z(r, chain.part, u);
        Store(Load(to) + Load(sum + u), to);
      }
    }
  }

  // Adds the product with C vectors of a chain to to_of(row).
  template <int C, class ToOf>
  void AddColumns(const Chain& chain, int thread, const ToOf& to_of) const {
    T* copy = copies + thread * kCopy;
    WeightColumns<T> b = {copy, chain.depth};
    WithWeights(chain, [&](const auto* data) {
      const int64_t width = cell_size - chain.unit,
                    stride = Matrix(chain).row_stride;
      if constexpr (std::is_same_v<decltype(data), const T*>) {
        if (C * kL <= width) {  // whole vectors
          b.data = data;
          b.stride = stride;
          return;
        }
      }
      for (int64_t k = 0; k < chain.depth; ++k) {
        for (int c = 0; c < C; ++c) {
          Store(LoadN(data + k * stride + c * kL, width - c * kL),
                copy + (k * C + c) * kL);
        }
      }
    });
    MultiplyBand<C>([&](int64_t r) { return Factors(chain, r); }, b,
                    {0, rows, C * kL, true}, to_of);
  }
};

// Stores one vector of the results of a row.
template <class T, class Cell>
TF_LSTM_OPS_INLINE void StoreStep(const OneStep<T>& f, const PackedRow& at,
                                  int64_t u, const typename Cell::Outputs& y) {
  const int64_t width = f.cell_size - u;
  if constexpr (Cell::kHasCellState) {
    if (f.args.final_c.data) {
      StoreN(y.*Cell::kState, f.args.final_c.data + at.batch * f.cell_size + u,
             width);
    }
  }
  StoreN(y.h, f.args.h + at.output * f.args.h_stride + u, width);
  ForEachSaved<Cell>([&](auto k, auto member) {
    if (!f.args.saved.Has(k)) return;
    f.args.saved.At(k, at.index, at.output, u,
                    [&](auto* to) { StoreN(y.*member, to, width); });
  });
}

// The cell's equations of a step, for rows whose z is complete: of kRows rows
// together, so that the latencies overlap.
template <class T, class Cell>
void ApplyCellToStep(const OneStep<T>& f, Units units) {
  constexpr int kParts = Cell::kPreActivations;
  for (int64_t u = units.begin; u < units.end; u += kLanes<T>) {
    const ParametersAt<T, Cell> with(f.args, u);
    const int64_t width = f.cell_size - u;
    for (int64_t first = 0; first < f.rows; first += kRows) {
      const int64_t rows = Min(f.rows - first, kRows);
      PackedRow at = f.args.valid->At(first);
      VecT<T> z[kRows][kParts], state[kRows];
      typename Cell::Outputs y[kRows];
      PackedRow ats[kRows];
      for (int64_t r = 0; r < rows; ++r) {
        ats[r] = at;
        at = f.args.valid->Next(at);
        for (int p = 0; p < kParts; ++p) z[r][p] = Load(f.Z(first + r, p, u));
        state[r] = VecT<T>{};
        if constexpr (Cell::kHasCellState) {
          const int64_t from = ats[r].batch * f.cell_size + u;
          state[r] = LoadN(f.args.c0.data + from, width);
        }
        y[r] = Cell::Gates(z[r], state[r], with.get());
      }
      for (int64_t r = 0; r < rows; ++r) {
        Cell::Output(z[r], state[r], with.get(), &y[r]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        StoreStep<T, Cell>(f, ats[r], u, y[r]);
      }
    }
  }
}

template <class T>
int64_t Items(const OneStep<T>& f, int64_t phase) {
  return phase == 0 ? f.ChainItems() : CeilDiv(f.padded_size, f.plan.group);
}

template <class T>
void Run(const OneStep<T>& f, int64_t phase, int64_t item, int thread) {
  if (phase == 0) return f.RunChain(item, thread);
  f.RunUnits(
      {item * f.plan.group, Min((item + 1) * f.plan.group, f.padded_size)},
      thread);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_ONE_STEP_H_
