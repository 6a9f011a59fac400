// SingleStep: the products of a call with one step. The weights are used once,
// so they are read in place and not packed.
//
// The sums have the same chains as the sums with packed weights, so the results
// have the same bits.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// z += x W + h R, of a cell whose gates all see both. z_of(row, part, unit)
// says where z is.
template <class T>
class SingleStep {
 public:
  explicit SingleStep(const EngineForward<T>& args)
      : args_(args),
        gates_(GateCount(args.config.cell)),
        cell_(args.config.cell_size),
        padded_(RoundUpToLanes<T>(cell_)),
        rows_(args.packed->size()),
        input_chains_(Blocks(args.config.input_size, kChain)),
        chains_(input_chains_ + Blocks(args.config.hidden_size, kChain)) {}

  // Whether the call has one step and its weights lie in rows of units.
  static bool Serves(const EngineForward<T>& args) {
    const auto by_input = [](const GateMatrices<const T>& w) {
      return w && w.column_stride == 1;
    };
    return args.packed->steps == 1 && args.packed->size() > 0 &&
           !args.config.bfloat16 && !args.config.projected() &&
           !args.input_dropout.data && !args.recurrent_dropout.data &&
           by_input(args.weights.input) && by_input(args.weights.recurrent);
  }

  void Place(Scratch<T>* scratch, int threads) {
    sums_ = scratch->Take(Few() ? chains_ * gates_ * rows_ * padded_ : 0);
    tile_ = scratch->Take(threads * kTile);
  }

  // With few rows, a separate phase computes the sums of the chains. An item is
  // a piece of a gate with rows as long as possible: each row is on another
  // page of memory, and address translation is slow.
  bool Few() const { return rows_ <= kRows; }
  int64_t Items() const { return Few() ? chains_ * gates_ * Pieces() : 0; }
  void Run(int64_t item, int thread) const {
    const Chain chain = ChainOf(item / Pieces() / gates_);
    const int part = static_cast<int>(item / Pieces() % gates_);
    const int64_t begin = item % Pieces() * kPiece;
    const int64_t end = Min(begin + kPiece, padded_);
    const int64_t whole = Min(end, cell_ / kL * kL);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t u = begin; u < end; u += kL) {
        Store(V{}, Sum(chain, part, r) + u);
      }
    }
    if (begin < whole) AddRows(chain, part, begin, whole);
    if (whole < end) {
      AddColumns<1>({chain, part, whole}, tile_ + thread * kTile,
                    [&](int64_t r) { return Sum(chain, part, r) + whole; });
    }
  }

  // Adds the products to z_of(row, part, unit), for units [begin, end).
  template <class ZOf>
  void Add(int64_t begin, int64_t end, int thread, const ZOf& z_of) const {
    if (Few()) {
      AddSums(begin, end, z_of);
    } else {
      AddProducts(begin, end, tile_ + thread * kTile, z_of);
    }
  }

 private:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kPiece = 1024;  // units
  static constexpr int64_t kTile = kChain * kColumns * kL;

  // Up to kChain rows of W or R.
  struct Chain {
    int64_t index;
    bool recurrent;
    int64_t row, depth;
  };
  // Up to kColumns vectors of a gate from a unit on.
  struct Slab {
    Chain chain;
    int part;
    int64_t unit;
  };

  int64_t Pieces() const { return Blocks(padded_, kPiece); }

  Chain ChainOf(int64_t index) const {
    const bool recurrent = index >= input_chains_;
    const int64_t depth =
        recurrent ? args_.config.hidden_size : args_.config.input_size;
    const int64_t row = (index - (recurrent ? input_chains_ : 0)) * kChain;
    return {index, recurrent, row, Min(kChain, depth - row)};
  }

  const GateMatrices<const T>& Weights(const Chain& chain) const {
    return chain.recurrent ? args_.weights.recurrent : args_.weights.input;
  }
  const T* Weights(const Slab& slab) const {
    const GateMatrices<const T>& w = Weights(slab.chain);
    return w.Block(args_.config.gate_order.block[slab.part]) +
           slab.chain.row * w.row_stride + slab.unit;
  }
  // The row of x or h that is multiplied with a chain.
  const T* Factors(const Chain& chain, int64_t row) const {
    const PackedSequence& of = *args_.packed;
    return chain.row +
           (chain.recurrent
                ? args_.h0.data + of.batch_row[row] * args_.config.hidden_size
                : args_.x + of.input_row[row] * args_.x_stride);
  }

  T* Sum(const Chain& chain, int part, int64_t row) const {
    return sums_ + ((chain.index * gates_ + part) * rows_ + row) * padded_;
  }

  void AddRows(const Chain& chain, int part, int64_t begin, int64_t end) const {
    WithConstant<kRows>(rows_, [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      constexpr int kDepth = OuterDepth(R);
      const int64_t stride = Weights(chain).row_stride;
      const T* b = Weights(Slab{chain, part, begin});
      const auto add = [&](int64_t k, auto depth) {
        const T* a[R];
        T* to[R];
        for (int r = 0; r < R; ++r) {
          a[r] = Factors(chain, r) + k;
          to[r] = Sum(chain, part, r) + begin;
        }
        AddOuter<T, R, decltype(depth)::value>(a, b + k * stride, stride,
                                               (end - begin) / kL, to);
      };
      int64_t k = 0;
      for (; k + kDepth <= chain.depth; k += kDepth) {
        add(k, std::integral_constant<int, kDepth>{});
      }
      for (; k < chain.depth; ++k) add(k, std::integral_constant<int, 1>{});
    });
  }

  template <class ZOf>
  void AddSums(int64_t begin, int64_t end, const ZOf& z_of) const {
    for (int64_t k = 0; k < chains_; ++k) {
      for (int p = 0; p < gates_; ++p) {
        for (int64_t r = 0; r < rows_; ++r) {
          const T* sum = Sum(ChainOf(k), p, r);
          for (int64_t u = begin; u < end; u += kL) {
            T* z = z_of(r, p, u);
            Store(Load(z) + Load(sum + u), z);
          }
        }
      }
    }
  }

  template <class ZOf>
  void AddProducts(int64_t begin, int64_t end, T* tile, const ZOf& z_of) const {
    const int64_t in_gate = Blocks(end - begin, kColumns * kL);
    const int64_t slabs = chains_ * gates_ * in_gate;
    const auto slab_of = [&](int64_t index) {
      return Slab{ChainOf(index / in_gate / gates_),
                  static_cast<int>(index / in_gate % gates_),
                  begin + index % in_gate * kColumns * kL};
    };
    for (int64_t k = 0; k < slabs; ++k) {
      const Slab slab = slab_of(k);
      const auto to = [&](int64_t r) { return z_of(r, slab.part, slab.unit); };
      WithConstant<kColumns>((end - slab.unit) / kL, [&](auto vectors) {
        AddColumns<decltype(vectors)::value>(slab, tile, to);
      });
    }
  }

  // Adds the product with C vectors of a chain to to_of(row).
  template <int C, class ToOf>
  void AddColumns(const Slab& slab, T* tile, const ToOf& to_of) const {
    const T* b = Weights(slab);
    int64_t stride = Weights(slab.chain).row_stride;
    if (slab.unit + C * kL > cell_) {  // a vector that is not whole
      for (int64_t k = 0; k < slab.chain.depth; ++k) {
        for (int c = 0; c < C; ++c) {
          Store(LoadN(b + k * stride + c * kL, cell_ - slab.unit - c * kL),
                tile + (k * C + c) * kL);
        }
      }
      b = tile;
      stride = C * kL;
    }
    MultiplyBlock<C>(
        [&](int64_t r) { return Factors(slab.chain, r); },
        WeightColumns<T>{b, slab.chain.depth, WeightFormat::kElements, stride},
        {0, rows_, C * kL, true}, to_of);
  }

  const EngineForward<T>& args_;
  const int gates_;
  const int64_t cell_, padded_;
  const int64_t rows_;  // of the batch
  const int64_t input_chains_, chains_;
  T* sums_ = nullptr;  // [chains, gates_, rows, padded]
  T* tile_ = nullptr;  // [threads, kChain, kColumns, lanes]
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_SINGLE_STEP_H_
