// CellBackward: BackwardPass with the equations of one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_BACKWARD_H_

#include "backends/cpu/simd/backward.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, template <class> class CellOf>
class CellBackward final : public BackwardPass<T> {
 public:
  CellBackward(const EngineBackward<T>& args, int threads)
      : Base(args, kShapeOf<Cell>, threads) {}

 private:
  using Base = BackwardPass<T>;
  using Cell = CellOf<VecMath<T>>;
  using Outputs = typename Cell::Outputs;
  using V = VecT<T>;
  using Base::args_, Base::batch_row_, Base::BiasSums, Base::cell_, Base::co_,
      Base::output_row_, Base::padded_, Base::PeepholeSums, Base::previous_,
      Base::PreviousH, Base::Projected, Base::RestoresH, Base::state_grad_,
      Base::StorePreActivationGrad, Base::UpstreamH, Base::weights_grad_;
  using typename Base::Rows;

  void CellRows(const Rows&, T*) override {}  // of other cells
  void WriteRowSums(int64_t) const override {}

  void Cells(const Rows& rows, int64_t begin, int64_t end, int64_t u) override {
    const int64_t width = cell_ - u;
    const CellParameters<T, Cell> of_cell(args_, u);
    const typename Cell::Parameters with = of_cell.parameters();
    V bias[Cell::kPreActivations] = {};
    V peephole[Cell::kPreActivations] = {};
    for (int64_t e = begin; e < end; ++e) {
      if (previous_[e] >= 0) PrefetchInputs(previous_[e], u);
      const Outputs y = LoadOutputs(e, u, with);
      const V before =
          Cell::kHasState ? LoadN(PreviousState(e) + u, width) : V{};
      const typename Cell::Gradients d =
          Cell::Backward(y, before, LoadUpstream(rows, e, u), with);
      StoreZGrad(rows, e, u, d.z);
      for (int p = 0; p < Cell::kPreActivations; ++p)
        bias[p] = bias[p] + d.z[p];
      AddPeephole(d.z, before, y, peephole);
      if constexpr (Cell::kHasState) {
        StoreN(d.state, state_grad_ + batch_row_[e] * cell_ + u, width);
      }
      if constexpr (Cell::kHasOutputGate) {
        if (Projected()) {
          StoreN(y.o * y.co,
                 rows.chunk->unprojected_h + rows.InChunk(e) * cell_ + u,
                 width);
        }
        if (RestoresH()) RestorePreviousH(rows, e, u, before, with);
      }
    }
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      AddTo(bias[p], BiasSums(rows.sums, p) + u);
      if (weights_grad_.peephole[p])
        AddTo(peephole[p], PeepholeSums(rows.sums, p) + u);
    }
  }

  // Adds dz times the state that a peephole reads.
  TF_LSTM_OPS_INLINE static void AddPeephole(
      const V (&z)[Cell::kPreActivations], V before, const Outputs& y,
      V* sums) {
    if constexpr (Cell::kHasPeephole) {
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        const V state = p == Cell::kNewStatePeephole ? y.*Cell::kState : before;
        sums[p] = sums[p] + z[p] * state;
      }
    }
  }

  static void AddTo(V value, T* to) { Store(Load(to) + value, to); }

  TF_LSTM_OPS_INLINE void StoreZGrad(const Rows& rows, int64_t e, int64_t u,
                                     const V (&z)[Cell::kPreActivations]) {
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      StorePreActivationGrad(rows, e, p, u, z[p]);
      if (args_.z_grad) {
        StoreN(z[p], args_.z_grad + (e * Cell::kPreActivations + p) * cell_ + u,
               cell_ - u);
      }
    }
  }

  // h_prev = o_prev * co_prev. The preceding packed row of this row of the
  // batch is computed next and reads co_prev again.
  void RestorePreviousH(const Rows& rows, int64_t e, int64_t u, V cs_prev,
                        const typename Cell::Parameters& with) {
    const int64_t width = cell_ - u;
    const int64_t p = previous_[e];
    V h = {};
    if (p < 0) {
      h = LoadN(PreviousH(e) + u, width);
    } else {
      Outputs y = {};
      y.cs = cs_prev;
      y.o = LoadN(Row(args_.saved, kSavedO, p) + u, width);
      const T* co = args_.saved.data[kSavedCo];
      if (co) {
        y.co = LoadN(Row(args_.saved, kSavedCo, p) + u, width);
      } else {
        Cell::Restore(&y, false, with);
        StoreN(y.co, co_ + batch_row_[e] * cell_ + u, width);
      }
      h = y.o * y.co;
    }
    StoreN(h, rows.chunk->previous_h + rows.InChunk(e) * padded_ + u, width);
  }

  // Saved activation k of packed row e.
  const T* Row(const SavedActivations<const T>& from, int k, int64_t e) const {
    return from.data[k] + (from.packed ? e : output_row_[e]) * from.stride[k];
  }

  // The inputs of a packed row, one cache line of each. The preceding packed
  // row of the same row of the batch is computed next, and lies too far away
  // for the hardware prefetcher.
  void PrefetchInputs(int64_t e, int64_t u) const {
    if (u * static_cast<int64_t>(sizeof(T)) % 64 != 0) return;
    ForEachSaved<Cell>([&](auto k, auto) {
      if (args_.saved.data[k]) PrefetchToRead(Row(args_.saved, k, e) + u);
      if (args_.saved_grad.data[k])
        PrefetchToRead(Row(args_.saved_grad, k, e) + u);
    });
    if (Cell::kHasState) PrefetchToRead(PreviousState(e) + u);
    if (args_.h_grad) {
      PrefetchToRead(args_.h_grad + output_row_[e] * args_.h_grad_stride + u);
    }
  }

  TF_LSTM_OPS_INLINE Outputs LoadOutputs(
      int64_t e, int64_t u, const typename Cell::Parameters& with) const {
    const int64_t width = cell_ - u;
    const SavedActivations<const T>& from = args_.saved;
    Outputs y = {};
    ForEachSaved<Cell>([&](auto k, auto member) {
      if (!from.data[k]) return;
      y.*member = LoadN(Row(from, k, e) + u, width);
    });
    const bool has_co = from.data[kSavedCo] || LoadCo(e, u, &y);
    Cell::Restore(&y, has_co, with);
    if constexpr (Cell::kSavedCount == 0) {
      y.h = LoadN(args_.h + output_row_[e] * args_.h_stride + u, width);
    }
    return y;
  }

  // Loads the co that RestorePreviousH stored, unless packed row e is the last
  // one of its row of the batch. Returns whether it did.
  TF_LSTM_OPS_INLINE bool LoadCo(int64_t e, int64_t u, Outputs* y) const {
    if constexpr (Cell::kHasOutputGate) {
      if (!RestoresH() || args_.packed->last[batch_row_[e]] == e) return false;
      y->co = LoadN(co_ + batch_row_[e] * cell_ + u, cell_ - u);
      return true;
    }
    return false;
  }

  // Gradients of the outputs of packed row e.
  TF_LSTM_OPS_INLINE Outputs LoadUpstream(const Rows& rows, int64_t e,
                                          int64_t u) const {
    const int64_t width = cell_ - u;
    const int64_t at = batch_row_[e] * cell_ + u;
    const SavedActivations<const T>& from = args_.saved_grad;
    Outputs grad = {};
    ForEachSaved<Cell>([&](auto k, auto member) {
      if (from.data[k]) grad.*member = LoadN(Row(from, k, e) + u, width);
    });
    grad.h = Projected()
                 ? LoadN(rows.chunk->unprojected_h_grad +
                             (e - rows.begin) * cell_ + u,
                         width)
                 : LoadN(args_.h0_grad.data + at, width) + UpstreamH(e, u);
    if constexpr (Cell::kHasState) {
      grad.*Cell::kState = LoadN(state_grad_ + at, width) + grad.*Cell::kState;
    }
    return grad;
  }

  const T* PreviousState(int64_t e) const {
    if constexpr (!Cell::kHasCellState) {
      return PreviousH(e);
    } else {
      const int64_t p = previous_[e];
      return p < 0 ? args_.c0.data + batch_row_[e] * cell_ : CellState(p);
    }
  }

  // An LSTM's cs.
  const T* CellState(int64_t e) const { return Row(args_.saved, kSavedCs, e); }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_CELL_BACKWARD_H_
