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
  using Base::AddTo, Base::args_, Base::batch_row_, Base::begin_, Base::Block,
      Base::cell_, Base::H, Base::kCanRound, Base::kCellRows, Base::output_row_,
      Base::Pairs, Base::pairs_, Base::previous_, Base::PreviousH,
      Base::Projected, Base::RoundedZGrad, Base::state_grad_,
      Base::StoresUnprojectedH, Base::unprojected_h_, Base::unprojected_h_grad_,
      Base::UpstreamH, Base::weights_grad_, Base::ZGrad;

  void Cells(int64_t step, int64_t begin, int64_t u) override {
    const int64_t first = begin_[step], last = begin_[step + 1];
    const int64_t end = Min(begin + kCellRows, last);
    const int64_t width = cell_ - u;
    const CellParameters<T, Cell> of_cell(args_, u);
    const typename Cell::Parameters with = of_cell.parameters();
    V bias[Cell::kPreActivations] = {};
    for (int64_t e = begin; e < end; ++e) {
      if (e + kAhead < last) PrefetchInputs(e + kAhead, u);
      const Outputs y = LoadOutputs(e, u, with);
      const V before =
          Cell::kHasState ? LoadN(PreviousState(e) + u, width) : V{};
      const typename Cell::Gradients d =
          Cell::Backward(y, before, LoadUpstream(e, e - first, u), with);
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        StoreN(d.z[p], ZGrad(e, p) + u, width);
        if constexpr (kCanRound) {
          if (pairs_)
            StorePairs(d.z[p], Pairs(RoundedZGrad(e, p)) + u / 2, width);
        }
        bias[p] = bias[p] + d.z[p];
      }
      if constexpr (Cell::kHasState) {
        StoreN(d.state, state_grad_ + batch_row_[e] * cell_ + u, width);
      }
      if constexpr (Cell::kHasOutputGate) {
        if (StoresUnprojectedH())
          StoreN(y.o * y.co, unprojected_h_ + e * cell_ + u, width);
      }
    }
    AddBias(bias, u);
    if constexpr (Cell::kHasPeephole) AddPeephole(begin, end, u);
  }

  void AddBias(const V* sums, int64_t u) {
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const int64_t at = Block(p) * cell_ + u;
      if (weights_grad_.input_bias && p < Cell::kInputPreActivations) {
        AddTo(sums[p], weights_grad_.input_bias + at, cell_ - u);
      }
      if (weights_grad_.recurrent_bias && p >= Cell::kFirstRecurrent) {
        AddTo(sums[p], weights_grad_.recurrent_bias + at, cell_ - u);
      }
    }
  }

  // For each gate the sum of dz times the state that its peephole reads.
  void AddPeephole(int64_t begin, int64_t end, int64_t u) {
    const int64_t width = cell_ - u;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      if (!weights_grad_.peephole[p]) continue;
      V sum = {};
      for (int64_t e = begin; e < end; ++e) {
        const T* seen =
            p == Cell::kSeesNewState ? CellState(e) : PreviousState(e);
        sum = sum + LoadN(ZGrad(e, p) + u, width) * LoadN(seen + u, width);
      }
      AddTo(sum, weights_grad_.peephole[p] + u, width);
    }
  }

  // Saved activation k of packed row e.
  const T* Row(const SavedActivations<const T>& from, int k, int64_t e) const {
    return from.data[k] + (from.packed ? e : output_row_[e]) * from.stride[k];
  }

  // Rows are too far apart for the hardware prefetcher.
  static constexpr int64_t kAhead = 4;
  void PrefetchInputs(int64_t e, int64_t u) const {
    ForEachSaved<Cell>([&](auto k, auto) {
      if (args_.saved.data[k]) PrefetchToRead(Row(args_.saved, k, e) + u);
      if (args_.saved_grad.data[k])
        PrefetchToRead(Row(args_.saved_grad, k, e) + u);
    });
    if (Cell::kHasState) PrefetchToRead(PreviousState(e) + u);
    if (args_.h_grad) {
      PrefetchToRead(args_.h_grad + output_row_[e] * args_.h_grad_stride + u);
    }
    for (int p = 0; p < Cell::kPreActivations; ++p)
      PrefetchToWrite(ZGrad(e, p) + u);
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
    Cell::Restore(&y, from.data[kSavedCo] != nullptr, with);
    if constexpr (Cell::kSavedCount == 0) y.h = LoadN(H(e) + u, width);
    return y;
  }

  // Gradients of the outputs of packed row e, the n-th of its step.
  TF_LSTM_OPS_INLINE Outputs LoadUpstream(int64_t e, int64_t n,
                                          int64_t u) const {
    const int64_t width = cell_ - u;
    const int64_t at = batch_row_[e] * cell_ + u;
    const SavedActivations<const T>& from = args_.saved_grad;
    Outputs grad = {};
    ForEachSaved<Cell>([&](auto k, auto member) {
      if (from.data[k]) grad.*member = LoadN(Row(from, k, e) + u, width);
    });
    grad.h = Projected()
                 ? LoadN(unprojected_h_grad_ + n * cell_ + u, width)
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
