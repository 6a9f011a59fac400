// ForwardPass: an LSTM layer over a batch of sequences, in one dispatch.
//
// The input's product with its weights is taken for all steps at once. Work is
// divided by hidden units, each with all four of its gates, so the cell's
// equations are applied to the accumulators of the recurrent product while they
// are in registers, and a step is one phase.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_

#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/vec_math.h"
#include "core/lstm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class ForwardPass {
 public:
  explicit ForwardPass(const LstmForward<T>& args)
      : args_(args),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        padded_(RoundUpToLanes<T>(cell_)),
        batch_(args.schedule->batch),
        entries_(args.schedule->size()),
        begin_(args.schedule->begin.data()),
        batch_row_(args.schedule->batch_row.data()),
        input_row_(args.schedule->input_row.data()),
        output_row_(args.schedule->output_row.data()),
        previous_(args.schedule->previous.data()),
        ordinal_(args.schedule->ordinal.data()) {}

  // Number of elements of scratch memory for so many threads.
  int64_t ScratchSize(int threads) const {
    return kGates * padded_ * (input_ + cell_) + entries_ * kGates * padded_ +
           StateSize() + DroppedHSize() + threads * DroppedXSize();
  }

  void PlaceScratch(T* scratch) {
    const auto take = [&](int64_t size) {
      T* place = scratch;
      scratch += size;
      return place;
    };
    packed_input_ = take(kGates * padded_ * input_);
    packed_recurrent_ = take(kGates * padded_ * cell_);
    z_ = take(entries_ * kGates * padded_);
    state_ = args_.final_c ? args_.final_c : take(StateSize());
    dropped_h_ = take(DroppedHSize());
    dropped_x_ = scratch;
  }

  // Phase 0 prepares, phase s + 1 is step s. An item is a vector of units.
  int64_t Phases() const { return args_.schedule->steps + 1; }
  int64_t Items(int64_t phase) const {
    const bool idle = phase > 0 && begin_[phase - 1] == begin_[phase];
    return idle ? 0 : padded_ / kL;
  }

  void Run(int64_t phase, int64_t item, int thread) {
    const int64_t u = item * kL;
    if (phase == 0) {
      PackWeights(u);
      LoadState(u);
      ProjectInput(u, dropped_x_ + thread * DroppedXSize());
    } else if (args_.dropout.recurrent) {
      Step<true>(begin_[phase - 1], begin_[phase], u);
    } else {
      Step<false>(begin_[phase - 1], begin_[phase], u);
    }
  }

 private:
  using V = VecT<T>;
  using Cell = LstmCell<VecMath<T>>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kChunk = 16 * kRows;  // rows of x at a time

  int64_t StateSize() const { return args_.final_c ? 0 : batch_ * cell_; }
  int64_t DroppedHSize() const {
    return args_.dropout.recurrent ? 2 * kGates * batch_ * cell_ : 0;
  }
  int64_t DroppedXSize() const {
    return args_.dropout.input ? kChunk * kGates * input_ : 0;
  }

  void PackWeights(int64_t u) {
    const int64_t end = u + kL < cell_ ? u + kL : cell_;
    for (int g = 0; g < kGates; ++g) {
      const int64_t column = args_.config.gate_order.Offset(g, cell_);
      PackColumns(args_.weights.input + column, kGates * cell_, 1, input_, u,
                  end, packed_input_ + g * padded_ * input_);
      PackColumns(args_.weights.recurrent + column, kGates * cell_, 1, cell_, u,
                  end, packed_recurrent_ + g * padded_ * cell_);
    }
  }

  void LoadState(int64_t u) {
    const int64_t width = cell_ - u;
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * cell_ + u;
      StoreN(LoadN(args_.c0 + at, width), state_ + at, width);
      if (args_.dropout.recurrent) DropH(LoadN(args_.h0 + at, width), b, 0, u);
    }
  }

  // z = x W + bias, for all entries.
  void ProjectInput(int64_t u, T* dropped_x) {
    if (!args_.dropout.input)
      return ProjectUnits<false>(0, entries_, u, nullptr);
    for (int64_t e = 0; e < entries_; e += kChunk) {
      const int64_t end = e + kChunk < entries_ ? e + kChunk : entries_;
      DropX(e, end, dropped_x);
      ProjectUnits<true>(e, end, u, dropped_x);
    }
  }

  template <bool kDropped>
  void ProjectUnits(int64_t begin, int64_t end, int64_t u, const T* dropped_x) {
    V bias[kGates];
    for (int g = 0; g < kGates; ++g) bias[g] = Bias(g, u);
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        const T* a[R];
        V acc[R][kGates];
        for (int r = 0; r < R; ++r) {
          a[r] = kDropped ? dropped_x + (e + r - begin) * kGates * input_
                          : args_.x + input_row_[e + r] * input_;
          for (int g = 0; g < kGates; ++g) acc[r][g] = bias[g];
        }
        Accumulate<T, R, kGates, kDropped>(a, input_,
                                           packed_input_ + u * input_,
                                           padded_ * input_, input_, acc);
        for (int r = 0; r < R; ++r) {
          for (int g = 0; g < kGates; ++g) Store(acc[r][g], Z(e + r, g, u));
        }
      });
    }
  }

  V Bias(int gate, int64_t u) const {
    const int64_t column = args_.config.gate_order.Offset(gate, cell_);
    V bias = args_.weights.bias
                 ? LoadN(args_.weights.bias + column + u, cell_ - u)
                 : V{};
    if (gate == kGateF) bias = bias + static_cast<T>(args_.config.forget_bias);
    return bias;
  }

  // One step of entries [begin, end) for the units of one vector.
  template <bool kDropped>
  void Step(int64_t begin, int64_t end, int64_t u) {
    const int64_t width = cell_ - u;
    const V clip = Broadcast(static_cast<T>(args_.config.cell_clip));
    const V* clip_or_null = args_.config.cell_clip > 0 ? &clip : nullptr;
    typename Cell::Peephole peephole;
    const typename Cell::Peephole* peephole_or_null = nullptr;
    if (args_.weights.has_peephole()) {
      peephole = {LoadN(args_.weights.wci + u, width),
                  LoadN(args_.weights.wcf + u, width),
                  LoadN(args_.weights.wco + u, width)};
      peephole_or_null = &peephole;
    }
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        const T* a[R];
        V acc[R][kGates];
        for (int r = 0; r < R; ++r) {
          a[r] = kDropped ? DroppedH(batch_row_[e + r], ordinal_[e + r], 0)
                          : PreviousH(e + r);
          for (int g = 0; g < kGates; ++g) acc[r][g] = Load(Z(e + r, g, u));
        }
        Accumulate<T, R, kGates, kDropped>(a, batch_ * cell_,
                                           packed_recurrent_ + u * cell_,
                                           padded_ * cell_, cell_, acc);
        for (int r = 0; r < R; ++r) {
          T* state = state_ + batch_row_[e + r] * cell_ + u;
          const typename Cell::Outputs y = Cell::Forward(
              {acc[r][kGateI], acc[r][kGateC], acc[r][kGateF], acc[r][kGateO]},
              LoadN(state, width), peephole_or_null, clip_or_null);
          StoreN(y.cs, state, width);
          StoreOutputs(y, e + r, u);
        }
      });
    }
  }

  void StoreOutputs(const typename Cell::Outputs& y, int64_t e, int64_t u) {
    const int64_t width = cell_ - u;
    StoreN(y.h, args_.h + output_row_[e] * cell_ + u, width);
    if (args_.dropout.recurrent) DropH(y.h, batch_row_[e], ordinal_[e] + 1, u);
    const StepRows<T>& to = args_.steps;
    const int64_t at = to.stride * (to.compact ? e : output_row_[e]) + u;
    if (to.i) StoreN(y.i, to.i + at, width);
    if (to.cs) StoreN(y.cs, to.cs + at, width);
    if (to.f) StoreN(y.f, to.f + at, width);
    if (to.o) StoreN(y.o, to.o + at, width);
    if (to.ci) StoreN(y.ci, to.ci + at, width);
    if (to.co) StoreN(y.co, to.co + at, width);
  }

  T* Z(int64_t e, int gate, int64_t u) const {
    return z_ + (e * kGates + gate) * padded_ + u;
  }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0 + batch_row_[e] * cell_
                            : args_.h + output_row_[previous_[e]] * cell_;
  }

  // h after `ordinal` steps of a batch row, as a gate sees it. The next step's
  // goes to the other of two places, since other items still read this one.
  T* DroppedH(int64_t row, int64_t ordinal, int gate) const {
    return dropped_h_ +
           (((ordinal & 1) * kGates + gate) * batch_ + row) * cell_;
  }

  void DropH(V h, int64_t row, int64_t ordinal, int64_t u) {
    const int64_t width = cell_ - u;
    for (int g = 0; g < kGates; ++g) {
      const int64_t set = args_.config.gate_order.block[g];
      const T* keep =
          args_.dropout.recurrent + (set * batch_ + row) * cell_ + u;
      StoreN(h * LoadN(keep, width), DroppedH(row, ordinal, g) + u, width);
    }
  }

  // x of entries [begin, end) as each gate sees it: [end - begin, 4, I].
  void DropX(int64_t begin, int64_t end, T* to) const {
    for (int64_t e = begin; e < end; ++e) {
      const T* x = args_.x + input_row_[e] * input_;
      for (int g = 0; g < kGates; ++g) {
        const int64_t set = args_.config.gate_order.block[g];
        const T* keep =
            args_.dropout.input + (set * batch_ + batch_row_[e]) * input_;
        for (int64_t i = 0; i < input_; ++i) *to++ = x[i] * keep[i];
      }
    }
  }

  const LstmForward<T>& args_;
  const int64_t input_, cell_, padded_, batch_, entries_;
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  const int64_t* ordinal_;
  T* packed_input_ = nullptr;      // [4, padded / lanes, I, lanes]
  T* packed_recurrent_ = nullptr;  // [4, padded / lanes, H, lanes]
  T* z_ = nullptr;                 // [V, 4, padded]
  T* state_ = nullptr;             // [B, H]
  T* dropped_h_ = nullptr;         // [2, 4, B, H]
  T* dropped_x_ = nullptr;         // [threads, kChunk, 4, I]
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
