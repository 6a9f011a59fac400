// SingleStep: the products of a call with one step. The weights are used once,
// so they are read in place and not packed. The chains, and so the bits, are
// those of packed weights.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/simd/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// z += x W + h R, of a cell whose gates all see both. z_of(row, part, unit)
// says where z is.
template <class T>
struct SingleStep {
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  // Units of an item with few rows: 4 KiB of a row of float weights, a page.
  static constexpr int64_t kPageGroup = 1024;
  static constexpr int64_t kCopy = kChain * kColumns * kL;

  explicit SingleStep(const EngineForward<T>& args)
      : args(args),
        gates(GateCount(args.config.cell)),
        cell_size(args.config.cell_size),
        padded_size(RoundUpToLanes<T>(cell_size)),
        rows(args.valid->size()),
        input_chains(CeilDiv(args.config.input_size, kChain)),
        chains(input_chains + CeilDiv(args.config.hidden_size, kChain)) {}

  // Whether the call has one step and its weights lie in rows of units. Weights
  // of bfloat16 are widened as they are read. Rounded factors need packed
  // pairs.
  static bool Serves(const EngineForward<T>& args) {
    const auto by_input = [](const GateMatrices<const T>& w) {
      return w && w.column_stride == 1;
    };
    return args.valid->steps == 1 && args.valid->size() > 0 &&
           !RoundsFactors(FormatOf(args.config.bfloat16)) &&
           !args.config.projected() && !args.input_dropout.data &&
           !args.recurrent_dropout.data && by_input(args.weights.input) &&
           by_input(args.weights.recurrent);
  }

  void Place(cpu::Scratch<T>* scratch, int threads) {
    sums =
        scratch->Take(has_few_rows() ? chains * gates * rows * padded_size : 0);
    copies = scratch->Take(threads * kCopy);
  }

  // With few rows, a separate phase computes the sums of the chains. An item is
  // a group of units of a gate with rows as long as possible: each row is on
  // another page of memory, and address translation is slow.
  bool has_few_rows() const { return rows <= kRows; }
  int64_t Items() const {
    return has_few_rows() ? chains * gates * CeilDiv(padded_size, kPageGroup)
                          : 0;
  }
  void Run(int64_t item, int thread) const {
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

  // Adds the products to z_of(row, part, unit), for units [begin, end).
  template <class ZOf>
  void Add(int64_t begin, int64_t end, int thread, const ZOf& z_of) const {
    for (int64_t index = 0; index < chains * gates; ++index) {
      Chain chain = ChainOf(index, begin);
      if (has_few_rows()) {
        AddSums(chain, end, z_of);
        continue;
      }
      for (; chain.unit < end; chain.unit += kColumns * kL) {
        WithConstant<kColumns>((end - chain.unit) / kL, [&](auto vectors) {
          AddColumns<decltype(vectors)::value>(chain, thread, [&](int64_t r) {
            return z_of(r, chain.part, chain.unit);
          });
        });
      }
    }
  }

  const EngineForward<T>& args;
  const int64_t gates;
  const int64_t cell_size, padded_size;
  const int64_t rows;  // of the batch
  const int64_t input_chains, chains;
  T* sums = nullptr;    // [chains, gates, rows, padded_size]
  T* copies = nullptr;  // [threads, kChain, kColumns, lanes]

 private:
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

  template <class ZOf>
  void AddSums(const Chain& chain, int64_t end, const ZOf& z_of) const {
    for (int64_t r = 0; r < rows; ++r) {
      const T* sum = Sum(chain, r);
      for (int64_t u = chain.unit; u < end; u += kL) {
        T* z = z_of(r, chain.part, u);
        Store(Load(z) + Load(sum + u), z);
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

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_
