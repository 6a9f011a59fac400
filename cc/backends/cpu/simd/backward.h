// BackwardPass: the gradients of ForwardPass.
//
// Only the product of the pre-activations' gradients with the transposed
// recurrent weights is sequential. The gradients of the weights and of the
// input are products over all steps, taken afterwards.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_

#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/vec_math.h"
#include "core/lstm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class BackwardPass {
 public:
  BackwardPass(const LstmBackward<T>& args, int threads)
      : args_(args),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        padded_(RoundUpToLanes<T>(cell_)),
        batch_(args.schedule->batch),
        entries_(args.schedule->size()),
        steps_(args.schedule->steps),
        group_(Group(padded_ / kL / (2 * threads))),
        begin_(args.schedule->begin.data()),
        batch_row_(args.schedule->batch_row.data()),
        input_row_(args.schedule->input_row.data()),
        output_row_(args.schedule->output_row.data()),
        previous_(args.schedule->previous.data()) {}

  int64_t ScratchSize(int threads) const {
    return kGates * padded_ * cell_ +
           kGates * RoundUpToLanes<T>(input_) * cell_ +
           (XSets() * input_ + HSets() * cell_) * entries_ +
           threads * kBlockSize;
  }

  void PlaceScratch(T* scratch) {
    packed_recurrent_ = scratch;
    packed_input_ = packed_recurrent_ + kGates * padded_ * cell_;
    x_columns_ = packed_input_ + kGates * RoundUpToLanes<T>(input_) * cell_;
    h_columns_ = x_columns_ + XSets() * input_ * entries_;
    blocks_ = h_columns_ + HSets() * cell_ * entries_;
  }

  // Phases 0 to S go back through the steps: phase p ends step S - p, whose dz
  // is complete, and begins step S - 1 - p. Then come the transposed x and h,
  // then the products over all steps.
  int64_t Phases() const { return steps_ + 3; }

  int64_t Items(int64_t phase) const {
    if (phase <= steps_) return Blocks(padded_, group_ * kL);
    if (phase == steps_ + 1) {
      return XSets() * Blocks(input_, kTile) + HSets() * Blocks(cell_, kTile);
    }
    return WeightItems(input_, args_.dinput) +
           WeightItems(cell_, args_.drecurrent) +
           (args_.dx ? Blocks(entries_, kRowChunk) * Blocks(input_, kBlock)
                     : 0);
  }

  void Run(int64_t phase, int64_t item, int thread) {
    if (phase <= steps_) return RunStep(phase, item * group_ * kL);
    if (phase == steps_ + 1) return Transpose(item);
    RunProduct(item, blocks_ + thread * kBlockSize);
  }

 private:
  using V = VecT<T>;
  using Math = VecMath<T>;
  using Cell = LstmCell<Math>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBlock = kColumns * kL;  // columns of a product
  static constexpr int64_t kRowChunk = 32 * kRows;  // and rows, of one item
  static constexpr int64_t kBlockSize = kDepth * kBlock;
  static constexpr int64_t kTile = 16;
  static constexpr int64_t kSummands = 32;  // short sums round less

  static int64_t Blocks(int64_t n, int64_t block) {
    return (n + block - 1) / block;
  }
  static int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t Group(int64_t n) { return n < 1 ? 1 : Min(n, kColumns); }

  // With dropout each gate has seen an x and an h of its own.
  int64_t XSets() const {
    return args_.dinput ? (args_.dropout.input ? kGates : 1) : 0;
  }
  int64_t HSets() const {
    return args_.drecurrent ? (args_.dropout.recurrent ? kGates : 1) : 0;
  }

  void RunStep(int64_t phase, int64_t begin) {
    const int64_t end = Min(begin + group_ * kL, cell_);
    if (phase == 0) Prepare(begin, end);
    const int64_t step = steps_ - phase;
    if (phase > 0 && (step > 0 || args_.wants_initial_dh)) {
      const Projection to_h = {packed_recurrent_, cell_,
                               args_.dropout.recurrent, batch_row_, args_.dh};
      Project(to_h, begin_[step], begin_[step + 1], begin, end);
    }
    if (step > 0) {
      for (int64_t u = begin; u < end; u += kL) {
        Cells(begin_[step - 1], begin_[step], u);
      }
    } else if (args_.dbias) {
      Bias(begin, end);
    }
  }

  void Prepare(int64_t begin, int64_t end) {
    PackTransposed(args_.weights.recurrent, begin, end, packed_recurrent_,
                   padded_);
    ClearPeephole(begin, end);
    if (begin == 0 && args_.dx) {
      PackTransposed(args_.weights.input, 0, input_, packed_input_,
                     RoundUpToLanes<T>(input_));
    }
  }

  // Weights [width, 4H] transposed, gate by gate: (k, n) = weights[n, gate k].
  void PackTransposed(const T* weights, int64_t begin, int64_t end, T* packed,
                      int64_t padded_width) {
    for (int g = 0; g < kGates; ++g) {
      PackColumns(weights + args_.config.gate_order.Offset(g, cell_), 1,
                  kGates * cell_, cell_, begin, end,
                  packed + g * padded_width * cell_);
    }
  }

  void ClearPeephole(int64_t begin, int64_t end) {
    if (!args_.weights.has_peephole()) return;
    for (T* sum : {args_.dwci, args_.dwcf, args_.dwco}) {
      for (int64_t u = begin; u < end; ++u) sum[u] = 0;
    }
  }

  // The cell's equations backward for entries [begin, end), the units of one
  // vector: from the gradients of h and cs to dz and the gradient of cs_prev.
  void Cells(int64_t begin, int64_t end, int64_t u) {
    const int64_t width = cell_ - u;
    typename Cell::Peephole peephole, sum = {};
    const typename Cell::Peephole* peephole_or_null = nullptr;
    if (args_.weights.has_peephole()) {
      peephole = {LoadN(args_.weights.wci + u, width),
                  LoadN(args_.weights.wcf + u, width),
                  LoadN(args_.weights.wco + u, width)};
      peephole_or_null = &peephole;
    }
    for (int64_t e = begin; e < end; ++e) {
      const typename Cell::Outputs y = LoadOutputs(e, u);
      const V cs_prev = LoadN(PreviousCell(e) + u, width);
      T* dc = args_.dc + batch_row_[e] * cell_ + u;
      const typename Cell::Gradients d =
          Cell::Backward(y, cs_prev, LoadUpstream(e, u), peephole_or_null);
      StoreN(d.cs_prev, dc, width);
      StoreN(d.z.i, Dz(e, kGateI) + u, width);
      StoreN(d.z.c, Dz(e, kGateC) + u, width);
      StoreN(d.z.f, Dz(e, kGateF) + u, width);
      StoreN(d.z.o, Dz(e, kGateO) + u, width);
      if (peephole_or_null) {
        sum = {sum.i + d.z.i * cs_prev, sum.f + d.z.f * cs_prev,
               sum.o + d.z.o * y.cs};
      }
    }
    if (peephole_or_null) {
      AddTo(sum.i, args_.dwci + u, width);
      AddTo(sum.f, args_.dwcf + u, width);
      AddTo(sum.o, args_.dwco + u, width);
    }
  }

  typename Cell::Outputs LoadOutputs(int64_t e, int64_t u) const {
    const int64_t width = cell_ - u;
    const StepRows<const T>& from = args_.steps;
    const int64_t at = from.stride * (from.compact ? e : output_row_[e]) + u;
    typename Cell::Outputs y = {};
    y.i = LoadN(from.i + at, width);
    y.cs = LoadN(from.cs + at, width);
    y.f = LoadN(from.f + at, width);
    y.o = LoadN(from.o + at, width);
    y.ci = LoadN(from.ci + at, width);
    y.co = from.co ? LoadN(from.co + at, width) : Math::Tanh(y.cs);
    return y;
  }

  typename Cell::Outputs LoadUpstream(int64_t e, int64_t u) const {
    const int64_t width = cell_ - u;
    const int64_t state = batch_row_[e] * cell_ + u;
    const int64_t row = output_row_[e] * cell_ + u;
    const StepRows<const T>& from = args_.bar;
    const auto load = [&](const T* rows) {
      return rows ? LoadN(rows + row, width) : V{};
    };
    typename Cell::Outputs bar;
    bar.i = load(from.i);
    bar.cs = LoadN(args_.dc + state, width) + load(from.cs);
    bar.f = load(from.f);
    bar.o = load(from.o);
    bar.ci = load(from.ci);
    bar.co = load(from.co);
    bar.h = LoadN(args_.dh + state, width) + load(args_.h_bar);
    return bar;
  }

  // From dz back through a layer's weights: to x, or to the previous h.
  struct Projection {
    const T* packed;        // [4, padded width / lanes, H, lanes]
    int64_t width;          // I or H
    const T* keep;          // [4, B, width] multipliers, or null
    const int64_t* target;  // of each entry: its row of `to`
    T* to;                  // [., width]
  };

  // to[target] = sum over the gates of keep * (dz W'), for entries [begin, end)
  // and columns [n, n_end), at most kBlock.
  void Project(const Projection& p, int64_t begin, int64_t end, int64_t n,
               int64_t n_end) const {
    WithConstant<kColumns>(Blocks(n_end - n, kL), [&](auto columns) {
      for (int64_t e = begin; e < end; e += kRows) {
        WithConstant<kRows>(end - e, [&](auto rows) {
          ProjectRows<decltype(rows)::value, decltype(columns)::value>(p, e, n);
        });
      }
    });
  }

  template <int R, int C>
  void ProjectRows(const Projection& p, int64_t e, int64_t n) const {
    V sum[R][C] = {};
    for (int g = 0; g < kGates; ++g) {
      const T* packed = p.packed + (g * RoundUpToLanes<T>(p.width) + n) * cell_;
      const T* a[R];
      for (int r = 0; r < R; ++r) a[r] = Dz(e + r, g);
      if (!p.keep) {
        Accumulate<T, R, C>(a, 0, packed, cell_ * kL, cell_, sum);
        continue;
      }
      V part[R][C] = {};
      Accumulate<T, R, C>(a, 0, packed, cell_ * kL, cell_, part);
      for (int r = 0; r < R; ++r) {
        const T* keep =
            p.keep + (Set(g) * batch_ + batch_row_[e + r]) * p.width + n;
        for (int c = 0; c < C; ++c) {
          sum[r][c] = sum[r][c] +
                      part[r][c] * LoadN(keep + c * kL, p.width - n - c * kL);
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      T* to = p.to + p.target[e + r] * p.width + n;
      for (int c = 0; c < C; ++c) {
        StoreN(sum[r][c], to + c * kL, p.width - n - c * kL);
      }
    }
  }

  void Bias(int64_t begin, int64_t end) {
    for (int g = 0; g < kGates; ++g) {
      T* bias = args_.dbias + args_.config.gate_order.Offset(g, cell_);
      for (int64_t u = begin; u < end; u += kL) {
        V sum = {};
        for (int64_t e = 0; e < entries_; e += kSummands) {
          V part = {};
          for (int64_t k = e; k < Min(e + kSummands, entries_); ++k) {
            part = part + LoadN(Dz(k, g) + u, cell_ - u);
          }
          sum = sum + part;
        }
        StoreN(sum, bias + u, cell_ - u);
      }
    }
  }

  // One block of columns of one gate's set of x_columns_ or h_columns_:
  // x_columns_[k, e] = x[k] of entry e, as the gate saw it.
  void Transpose(int64_t item) {
    const int64_t x_blocks = Blocks(input_, kTile);
    const int64_t x_items = XSets() * x_blocks;
    if (item < x_items) {
      const int64_t gate = item / x_blocks;
      TransposeTiles(
          [&](int64_t e) { return args_.x + input_row_[e] * input_; },
          Keep(args_.dropout.input, gate, input_), input_,
          item % x_blocks * kTile, x_columns_ + gate * input_ * entries_);
      return;
    }
    item -= x_items;
    const int64_t h_blocks = Blocks(cell_, kTile);
    const int64_t gate = item / h_blocks;
    TransposeTiles([&](int64_t e) { return PreviousH(e); },
                   Keep(args_.dropout.recurrent, gate, cell_), cell_,
                   item % h_blocks * kTile,
                   h_columns_ + gate * cell_ * entries_);
  }

  template <class RowOf>
  void TransposeTiles(const RowOf& row_of, const T* keep, int64_t width,
                      int64_t begin, T* to) const {
    const int64_t end = Min(begin + kTile, width);
    for (int64_t e0 = 0; e0 < entries_; e0 += kTile) {
      const int64_t e1 = Min(e0 + kTile, entries_);
      for (int64_t e = e0; e < e1; ++e) {
        const T* row = row_of(e);
        const T* kept = keep ? keep + batch_row_[e] * width : nullptr;
        for (int64_t k = begin; k < end; ++k) {
          to[k * entries_ + e] = kept ? row[k] * kept[k] : row[k];
        }
      }
    }
  }

  // Items of a weight gradient [rows, 4H]: gates, blocks of columns, of rows.
  int64_t WeightItems(int64_t rows, const T* wanted) const {
    return wanted ? kGates * Blocks(cell_, kBlock) * Blocks(rows, kRowChunk)
                  : 0;
  }

  // dW = x' dz, dR = h_prev' dz, dx = dz W'.
  void RunProduct(int64_t item, T* block) {
    const int64_t input_items = WeightItems(input_, args_.dinput);
    if (item < input_items) {
      return WeightGradient(item, x_columns_, XSets() > 1, input_, args_.dinput,
                            block);
    }
    item -= input_items;
    const int64_t recurrent_items = WeightItems(cell_, args_.drecurrent);
    if (item < recurrent_items) {
      return WeightGradient(item, h_columns_, HSets() > 1, cell_,
                            args_.drecurrent, block);
    }
    item -= recurrent_items;
    const int64_t e = item / Blocks(input_, kBlock) * kRowChunk;
    const int64_t n = item % Blocks(input_, kBlock) * kBlock;
    const Projection to_x = {packed_input_, input_, args_.dropout.input,
                             input_row_, args_.dx};
    Project(to_x, e, Min(e + kRowChunk, entries_), n, Min(n + kBlock, input_));
  }

  void WeightGradient(int64_t item, const T* columns, bool own_columns,
                      int64_t rows, T* to, T* block) const {
    const int64_t row_chunks = Blocks(rows, kRowChunk);
    const int64_t m = item % row_chunks * kRowChunk;
    const int64_t n = item / row_chunks % Blocks(cell_, kBlock) * kBlock;
    const int g = static_cast<int>(item / row_chunks / Blocks(cell_, kBlock));
    const T* a = columns + (own_columns ? g * rows * entries_ : 0);
    const int64_t width = Min(kBlock, cell_ - n);
    int64_t k = 0;
    do {  // once even where there are no entries, to write zeros
      const int64_t depth = Min(kDepth, entries_ - k);
      PackColumns(Dz(k, g) + n, kGates * cell_, 1, depth, 0, width, block);
      WithConstant<kColumns>(Blocks(width, kL), [&](auto vectors) {
        MultiplyBlock<T, decltype(vectors)::value>(
            a + k, entries_, block, depth, m, Min(m + kRowChunk, rows), n,
            cell_, k > 0, to + args_.config.gate_order.Offset(g, cell_),
            kGates * cell_);
      });
      k += depth;
    } while (k < entries_);
  }

  static void AddTo(V value, T* to, int64_t width) {
    StoreN(LoadN(to, width) + value, to, width);
  }

  const T* PreviousCell(int64_t e) const {
    const int64_t p = previous_[e];
    if (p < 0) return args_.c0 + batch_row_[e] * cell_;
    return args_.steps.cs +
           args_.steps.stride * (args_.steps.compact ? p : output_row_[p]);
  }

  T* Dz(int64_t e, int gate) const {
    return args_.dz + (e * kGates + gate) * cell_;
  }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0 + batch_row_[e] * cell_
                            : args_.h + output_row_[previous_[e]] * cell_;
  }

  // Position of a gate's set among the dropout multipliers.
  int64_t Set(int64_t gate) const {
    return args_.config.gate_order.block[gate];
  }

  const T* Keep(const T* sets, int64_t gate, int64_t width) const {
    return sets ? sets + Set(gate) * batch_ * width : nullptr;
  }

  const LstmBackward<T>& args_;
  const int64_t input_, cell_, padded_, batch_, entries_, steps_;
  const int64_t group_;  // vectors of units in an item
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  T* packed_recurrent_ = nullptr;  // [4, padded / lanes, H, lanes]
  T* packed_input_ = nullptr;      // [4, padded I / lanes, H, lanes]
  T* x_columns_ = nullptr;         // [sets, I, V]
  T* h_columns_ = nullptr;         // [sets, H, V]
  T* blocks_ = nullptr;            // [threads, kDepth, kBlock]
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
