// ForwardPass: a recurrent layer over a batch of sequences, in one dispatch.
//
// The input's product with its weights is taken for all steps at once. Work is
// divided by hidden units, each with all of its gates, so the cell's equations
// are applied to the accumulators of the recurrent product while they are in
// registers, and a step is one phase; with a projection it is two.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_

#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"
#include "core/rnn.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class ForwardPass {
 public:
  explicit ForwardPass(const RnnForward<T>& args)
      : args_(args),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        padded_(RoundUpToLanes<T>(cell_)),
        batch_(args.schedule->batch),
        entries_(args.schedule->size()),
        begin_(args.schedule->begin.data()),
        batch_row_(args.schedule->batch_row.data()),
        input_row_(args.schedule->input_row.data()),
        output_row_(args.schedule->output_row.data()),
        previous_(args.schedule->previous.data()),
        ordinal_(args.schedule->ordinal.data()) {}

  // The pieces of scratch memory, for so many threads.
  void Place(Scratch<T>* scratch, int threads) {
    packed_input_ =
        scratch->Take(args_.weights.input ? kInputParts * padded_ * input_ : 0);
    packed_recurrent_ = scratch->Take(kRecurrentParts * padded_ * hidden_);
    packed_projection_ =
        scratch->Take(Projected() ? RoundUpToLanes<T>(hidden_) * cell_ : 0);
    z_ = scratch->Take(entries_ * kInputParts * padded_);
    state_ = args_.final_c     ? args_.final_c
             : Cell::kHasState ? scratch->Take(batch_ * cell_)
                               : nullptr;
    unprojected_ = scratch->Take(Projected() ? batch_ * cell_ : 0);
    dropped_h_ = scratch->Take(
        args_.dropout.recurrent ? 2 * kRecurrentParts * batch_ * hidden_ : 0);
    dropped_x_ = scratch->Take(threads * DroppedXSize());
  }

  // Phase 0 prepares; then come the steps, each in one phase, or in two where
  // the second one projects. An item is a vector of units.
  int64_t Phases() const { return args_.schedule->steps * StepPhases() + 1; }
  int64_t Items(int64_t phase) const {
    if (phase == 0) return padded_ / kL;
    const int64_t step = (phase - 1) / StepPhases();
    if (begin_[step] == begin_[step + 1]) return 0;
    return (Projects(phase) ? RoundUpToLanes<T>(hidden_) : padded_) / kL;
  }

  void Run(int64_t phase, int64_t item, int thread) {
    const int64_t u = item * kL;
    if (phase == 0) {
      PackWeights(u);
      LoadState(u);
      ProjectInput(u, dropped_x_ + thread * DroppedXSize());
      return;
    }
    const int64_t step = (phase - 1) / StepPhases();
    if (Projects(phase)) {
      ProjectOutput(begin_[step], begin_[step + 1], u);
    } else if (args_.dropout.recurrent) {
      Step<true>(begin_[step], begin_[step + 1], u);
    } else {
      Step<false>(begin_[step], begin_[step + 1], u);
    }
  }

 private:
  using V = VecT<T>;
  using Cell = CellOf<VecMath<T>>;
  using Outputs = typename Cell::Outputs;
  static constexpr int kL = kLanes<T>;
  static constexpr int kInputParts = Cell::kInputParts;
  static constexpr int kRecurrentParts = Cell::kRecurrentParts;
  static constexpr int kFirst = Cell::kFirstRecurrent;
  static constexpr int64_t kChunk = 16 * kRows;  // rows of x at a time

  bool Projected() const { return args_.config.projected(); }
  int64_t StepPhases() const { return Projected() ? 2 : 1; }
  bool Projects(int64_t phase) const { return Projected() && phase % 2 == 0; }

  int64_t DroppedXSize() const {
    return args_.dropout.input ? kChunk * kInputParts * input_ : 0;
  }

  int Block(int part) const { return args_.config.gate_order.block[part]; }

  void PackWeights(int64_t u) {
    const auto pack = [&](const GateMatrices<const T>& from, int block,
                          int64_t depth, int64_t columns, T* to) {
      PackColumns(from.Block(block), from.row_stride, from.column_stride, depth,
                  u, u + kL < columns ? u + kL : columns, to);
    };
    for (int p = 0; p < kInputParts && args_.weights.input; ++p) {
      pack(args_.weights.input, Block(p), input_, cell_,
           packed_input_ + p * padded_ * input_);
    }
    for (int p = 0; p < kRecurrentParts; ++p) {
      pack(args_.weights.recurrent, Block(kFirst + p), hidden_, cell_,
           packed_recurrent_ + p * padded_ * hidden_);
    }
    if (Projected() && u < hidden_) {
      pack(args_.weights.projection, 0, cell_, hidden_, packed_projection_);
    }
  }

  void LoadState(int64_t u) {
    const int64_t width = cell_ - u;
    const T* initial = Cell::kOwnState ? args_.c0 : args_.h0;
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * cell_ + u;
      if (Cell::kHasState) {
        StoreN(LoadN(initial + at, width), state_ + at, width);
      }
      if (args_.dropout.recurrent) DropH(LoadN(args_.h0 + at, width), b, 0, u);
    }
  }

  // z = x W + bias, for all entries.
  void ProjectInput(int64_t u, T* dropped_x) {
    V bias[kInputParts];
    for (int p = 0; p < kInputParts; ++p) bias[p] = Bias(p, u);
    if (!args_.weights.input) return AddInput(bias, u);
    if (!args_.dropout.input) {
      return ProjectUnits<false>(0, entries_, bias, u, nullptr);
    }
    for (int64_t e = 0; e < entries_; e += kChunk) {
      const int64_t end = e + kChunk < entries_ ? e + kChunk : entries_;
      DropX(e, end, dropped_x);
      ProjectUnits<true>(e, end, bias, u, dropped_x);
    }
  }

  template <bool kDropped>
  void ProjectUnits(int64_t begin, int64_t end, const V* bias, int64_t u,
                    const T* dropped_x) {
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        const T* a[R];
        V acc[R][kInputParts];
        for (int r = 0; r < R; ++r) {
          a[r] = kDropped ? dropped_x + (e + r - begin) * kInputParts * input_
                          : args_.x + input_row_[e + r] * args_.x_stride;
          for (int p = 0; p < kInputParts; ++p) acc[r][p] = bias[p];
        }
        Accumulate<T, R, kInputParts, kDropped>(a, input_,
                                                packed_input_ + u * input_,
                                                padded_ * input_, input_, acc);
        for (int r = 0; r < R; ++r) {
          for (int p = 0; p < kInputParts; ++p)
            Store(acc[r][p], Z(e + r, p, u));
        }
      });
    }
  }

  // z = x + bias: each gate sees the input itself.
  void AddInput(const V* bias, int64_t u) {
    for (int64_t e = 0; e < entries_; ++e) {
      const T* x = args_.x + input_row_[e] * args_.x_stride + u;
      for (int p = 0; p < kInputParts; ++p) {
        const T* seen = x + Block(p) * args_.config.x_gate_stride;
        Store(LoadN(seen, cell_ - u) + bias[p], Z(e, p, u));
      }
    }
  }

  // What is added to a part's products.
  V Bias(int part, int64_t u) const {
    const int64_t at = Block(part) * cell_ + u;
    const auto load = [&](const T* bias, bool has_part) {
      return bias && has_part ? LoadN(bias + at, cell_ - u) : V{};
    };
    V bias = load(args_.weights.input_bias, part < kInputParts) +
             load(args_.weights.recurrent_bias, part >= kFirst);
    if (Cell::kHasPeephole && part == kPartF) {
      bias = bias + static_cast<T>(args_.config.forget_bias);
    }
    return bias;
  }

  // One step of entries [begin, end) for the units of one vector.
  template <bool kDropped>
  void Step(int64_t begin, int64_t end, int64_t u) {
    const int64_t width = cell_ - u;
    const CellParameters<T, Cell> with(args_, u);
    V bias[kRecurrentParts];  // of parts that the input has no share in
    for (int p = 0; p < kRecurrentParts; ++p) {
      bias[p] = kFirst + p < kInputParts ? V{} : Bias(kFirst + p, u);
    }
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        const T* a[R];
        V acc[R][kRecurrentParts];
        for (int r = 0; r < R; ++r) {
          a[r] = kDropped ? DroppedH(batch_row_[e + r], ordinal_[e + r], 0)
                          : PreviousH(e + r);
          for (int p = 0; p < kRecurrentParts; ++p) {
            acc[r][p] = kFirst + p < kInputParts ? Load(Z(e + r, kFirst + p, u))
                                                 : bias[p];
          }
        }
        Accumulate<T, R, kRecurrentParts, kDropped>(
            a, batch_ * hidden_, packed_recurrent_ + u * hidden_,
            padded_ * hidden_, hidden_, acc);
        for (int r = 0; r < R; ++r) {
          V z[Cell::kParts];
          for (int p = 0; p < kFirst; ++p) z[p] = Load(Z(e + r, p, u));
          for (int p = 0; p < kRecurrentParts; ++p) z[kFirst + p] = acc[r][p];
          T* state = Cell::kHasState ? state_ + batch_row_[e + r] * cell_ + u
                                     : nullptr;
          const Outputs y =
              Cell::Forward(z, Cell::kHasState ? LoadN(state, width) : V{},
                            with.parameters());
          if constexpr (Cell::kHasState) StoreN(y.*Cell::kState, state, width);
          StoreOutputs(y, e + r, u);
        }
      });
    }
  }

  void StoreOutputs(const Outputs& y, int64_t e, int64_t u) {
    const int64_t width = cell_ - u;
    T* h = Projected() ? unprojected_ + batch_row_[e] * cell_ : H(e);
    StoreN(y.h, h + u, width);
    if (args_.dropout.recurrent) DropH(y.h, batch_row_[e], ordinal_[e] + 1, u);
    const StepRows<T>& to = args_.steps;
    const int64_t row = to.compact ? e : output_row_[e];
    ForEachKept<Cell>([&](auto k, auto member) {
      if (!to.row[k]) return;
      StoreN(y.*member, to.row[k] + row * to.stride[k] + u, width);
    });
  }

  // h = Wp m, of entries [begin, end), the units of one vector.
  void ProjectOutput(int64_t begin, int64_t end, int64_t u) {
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        const T* a[R];
        V acc[R][1] = {};
        for (int r = 0; r < R; ++r) {
          a[r] = unprojected_ + batch_row_[e + r] * cell_;
        }
        Accumulate<T, R, 1>(a, 0, packed_projection_ + u * cell_, 0, cell_,
                            acc);
        for (int r = 0; r < R; ++r) {
          StoreN(acc[r][0], H(e + r) + u, hidden_ - u);
        }
      });
    }
  }

  T* Z(int64_t e, int part, int64_t u) const {
    return z_ + (e * kInputParts + part) * padded_ + u;
  }

  T* H(int64_t e) const { return args_.h + output_row_[e] * args_.h_stride; }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0 + batch_row_[e] * hidden_
                            : H(previous_[e]);
  }

  // h after `ordinal` steps of a batch row, as a gate sees it. The next step's
  // goes to the other of two places, since other items still read this one.
  T* DroppedH(int64_t row, int64_t ordinal, int p) const {
    return dropped_h_ +
           (((ordinal & 1) * kRecurrentParts + p) * batch_ + row) * hidden_;
  }

  void DropH(V h, int64_t row, int64_t ordinal, int64_t u) {
    const int64_t width = hidden_ - u;
    for (int p = 0; p < kRecurrentParts; ++p) {
      const T* keep = args_.dropout.recurrent +
                      (Block(kFirst + p) * batch_ + row) * hidden_ + u;
      StoreN(h * LoadN(keep, width), DroppedH(row, ordinal, p) + u, width);
    }
  }

  // x of entries [begin, end) as each gate sees it: [end - begin, parts, I].
  void DropX(int64_t begin, int64_t end, T* to) const {
    for (int64_t e = begin; e < end; ++e) {
      const T* x = args_.x + input_row_[e] * args_.x_stride;
      for (int p = 0; p < kInputParts; ++p) {
        const T* keep =
            args_.dropout.input + (Block(p) * batch_ + batch_row_[e]) * input_;
        for (int64_t i = 0; i < input_; ++i) *to++ = x[i] * keep[i];
      }
    }
  }

  const RnnForward<T>& args_;
  const int64_t input_, cell_, hidden_, padded_, batch_, entries_;
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  const int64_t* ordinal_;
  T* packed_input_ = nullptr;       // [input parts, padded / lanes, I, lanes]
  T* packed_recurrent_ = nullptr;   // [rec. parts, padded / lanes, P, lanes]
  T* packed_projection_ = nullptr;  // [padded P / lanes, H, lanes]
  T* z_ = nullptr;                  // [V, input parts, padded]
  T* state_ = nullptr;              // [B, H]
  T* unprojected_ = nullptr;        // [B, H]
  T* dropped_h_ = nullptr;          // [2, recurrent parts, B, P]
  T* dropped_x_ = nullptr;          // [threads, kChunk, input parts, I]
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
