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
  explicit BackwardPass(const LstmBackward<T>& args)
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
        previous_(args.schedule->previous.data()) {}

  int64_t ScratchSize(int members) const {
    return kGates * padded_ * cell_ + (input_ + cell_) * entries_ +
           members * GemmScratch<T>();
  }

  void Run(const Member& member, T* scratch) {
    PlaceScratch(scratch, member.index());
    const auto units = member.Share(cell_, kL);
    PackWeights(units.begin, units.end);
    ClearPeephole(units.begin, units.end);
    for (int64_t s = args_.schedule->steps - 1; s >= 0; --s) {
      for (int64_t u = units.begin; u < units.end; u += kL) {
        Cells(begin_[s], begin_[s + 1], u);
      }
      if (s == 0 && !args_.wants_initial_dh) break;
      member.Wait();  // for all units' dz of this step
      for (int64_t u = units.begin; u < units.end; u += kColumns * kL) {
        const int64_t width =
            units.end - u < kColumns * kL ? units.end - u : kColumns * kL;
        WithConstant<kColumns>((width + kL - 1) / kL, [&](auto vectors) {
          PreviousH<decltype(vectors)::value>(begin_[s], begin_[s + 1], u);
        });
      }
    }
    if (args_.dbias) Bias(units.begin, units.end);
    Products(member);
  }

 private:
  using V = VecT<T>;
  using Math = VecMath<T>;
  using Cell = LstmCell<Math>;
  static constexpr int kL = kLanes<T>;

  void PlaceScratch(T* scratch, int member) {
    packed_ = scratch;
    x_columns_ = packed_ + kGates * padded_ * cell_;
    h_columns_ = x_columns_ + input_ * entries_;
    gemm_ = h_columns_ + cell_ * entries_ + member * GemmScratch<T>();
  }

  // The recurrent weights transposed, gate by gate: (k, u) = R[u, gate k].
  void PackWeights(int64_t begin, int64_t end) {
    for (int g = 0; g < kGates; ++g) {
      PackColumns(args_.weights.recurrent +
                      args_.config.gate_order.Offset(g, cell_),
                  1, kGates * cell_, cell_, begin, end,
                  packed_ + g * padded_ * cell_);
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

  // The gradient of the previous h, for C vectors of units: the sum over the
  // gates of dz R', each as that gate saw h.
  template <int C>
  void PreviousH(int64_t begin, int64_t end, int64_t u) {
    for (int64_t e = begin; e < end; e += kRows) {
      WithConstant<kRows>(end - e, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        V sum[R][C] = {};
        for (int g = 0; g < kGates; ++g) {
          const T* packed = packed_ + (g * padded_ + u) * cell_;
          const T* a[R];
          for (int r = 0; r < R; ++r) a[r] = Dz(e + r, g);
          if (!args_.dropout.recurrent) {
            Accumulate<T, R, C>(a, 0, packed, cell_ * kL, cell_, sum);
            continue;
          }
          V part[R][C] = {};
          Accumulate<T, R, C>(a, 0, packed, cell_ * kL, cell_, part);
          for (int r = 0; r < R; ++r) {
            const T* keep = KeepH(g) + batch_row_[e + r] * cell_ + u;
            for (int c = 0; c < C; ++c) {
              sum[r][c] = sum[r][c] +
                          part[r][c] * LoadN(keep + c * kL, cell_ - u - c * kL);
            }
          }
        }
        for (int r = 0; r < R; ++r) {
          T* dh = args_.dh + batch_row_[e + r] * cell_ + u;
          for (int c = 0; c < C; ++c) {
            StoreN(sum[r][c], dh + c * kL, cell_ - u - c * kL);
          }
        }
      });
    }
  }

  void Bias(int64_t begin, int64_t end) {
    for (int g = 0; g < kGates; ++g) {
      T* bias = args_.dbias + args_.config.gate_order.Offset(g, cell_);
      for (int64_t u = begin; u < end; u += kL) {
        V sum = {};
        for (int64_t e = 0; e < entries_; ++e) {
          sum = sum + LoadN(Dz(e, g) + u, cell_ - u);
        }
        StoreN(sum, bias + u, cell_ - u);
      }
    }
  }

  // dW = x' dz, dR = h_prev' dz, dx = dz W', gate by gate.
  void Products(const Member& member) {
    const bool dropped = args_.dropout.input || args_.dropout.recurrent;
    for (int g = 0; g < kGates; ++g) {
      if (g == 0 || dropped) {
        member.Wait();  // until nobody reads the last gate's columns
        TransposeX(g, member.Share(input_, 1));
        TransposeH(g, member.Share(cell_, 1));
        member.Wait();
      }
      const int64_t column = args_.config.gate_order.Offset(g, cell_);
      if (args_.dinput) {
        Gemm(WeightGradient(g, x_columns_, input_, args_.dinput + column),
             member, gemm_);
      }
      if (args_.drecurrent) {
        Gemm(WeightGradient(g, h_columns_, cell_, args_.drecurrent + column),
             member, gemm_);
      }
      if (args_.dx) Gemm(InputGradient(g, column), member, gemm_);
    }
  }

  GemmArgs<T> WeightGradient(int gate, const T* columns, int64_t rows,
                             T* to) const {
    GemmArgs<T> g = {};
    g.rows = rows;
    g.columns = cell_;
    g.depth = entries_;
    g.a = columns;
    g.a_stride = entries_;
    g.b = Dz(0, gate);
    g.b_row_stride = kGates * cell_;
    g.b_column_stride = 1;
    g.c = to;
    g.c_stride = kGates * cell_;
    return g;
  }

  GemmArgs<T> InputGradient(int gate, int64_t column) const {
    GemmArgs<T> g = {};
    g.rows = entries_;
    g.columns = input_;
    g.depth = cell_;
    g.a = Dz(0, gate);
    g.a_stride = kGates * cell_;
    g.b = args_.weights.input + column;
    g.b_row_stride = 1;
    g.b_column_stride = kGates * cell_;
    g.c = args_.dx;
    g.c_stride = input_;
    g.c_rows = input_row_;
    g.scale = args_.dropout.input ? KeepX(gate) : nullptr;
    g.scale_rows = batch_row_;
    g.accumulate = gate > 0;
    return g;
  }

  // x_columns_[i, e] = x of entry e, as the gate saw it.
  void TransposeX(int gate, Member::Range range) {
    if (!args_.dinput) return;
    const T* keep = args_.dropout.input ? KeepX(gate) : nullptr;
    for (int64_t e = 0; e < entries_; ++e) {
      const T* x = args_.x + input_row_[e] * input_;
      Column(x, keep ? keep + batch_row_[e] * input_ : nullptr, range,
             x_columns_ + e);
    }
  }

  void TransposeH(int gate, Member::Range range) {
    if (!args_.drecurrent) return;
    const T* keep = args_.dropout.recurrent ? KeepH(gate) : nullptr;
    for (int64_t e = 0; e < entries_; ++e) {
      const T* h = previous_[e] < 0
                       ? args_.h0 + batch_row_[e] * cell_
                       : args_.h + output_row_[previous_[e]] * cell_;
      Column(h, keep ? keep + batch_row_[e] * cell_ : nullptr, range,
             h_columns_ + e);
    }
  }

  void Column(const T* row, const T* keep, Member::Range range, T* to) const {
    for (int64_t k = range.begin; k < range.end; ++k) {
      to[k * entries_] = keep ? row[k] * keep[k] : row[k];
    }
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

  const T* KeepX(int gate) const {
    return args_.dropout.input +
           args_.config.gate_order.block[gate] * batch_ * input_;
  }
  const T* KeepH(int gate) const {
    return args_.dropout.recurrent +
           args_.config.gate_order.block[gate] * batch_ * cell_;
  }

  const LstmBackward<T>& args_;
  const int64_t input_, cell_, padded_, batch_, entries_;
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  T* packed_ = nullptr;     // [4, padded / lanes, H, lanes]
  T* x_columns_ = nullptr;  // [I, V]
  T* h_columns_ = nullptr;  // [H, V]
  T* gemm_ = nullptr;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
