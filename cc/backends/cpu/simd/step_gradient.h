// StepGradient: the backward pass of one LSTM step without matrix products, for
// LSTMBlockCellGrad. It reads and writes each element of the activations and of
// their gradients once.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_STEP_GRADIENT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_STEP_GRADIENT_H_

#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/thread_team.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// `args` is a step that cpu::IsStepGradient accepts. Row b of the tensors is
// row b of the batch. An item is a range of units of all rows, so the sums over
// the rows do not depend on the number of threads.
template <class T>
class StepGradient {
 public:
  StepGradient(const LayerBackward<T>& args, int threads)
      : args_(args),
        cell_(args.config.cell_size),
        group_(kL * Blocks(Blocks(cell_, kL), threads)) {}

  int64_t Items() const { return Blocks(cell_, group_); }

  void Run(int64_t item) const {
    const int64_t begin = item * group_;
    const int64_t end = Min(begin + group_, cell_);
    if (args_.weights.has_peephole()) {
      RunUnits<true>(begin, end);
    } else {
      RunUnits<false>(begin, end);
    }
  }

 private:
  using V = VecT<T>;
  using Cell = LstmCell<VecMath<T>>;
  using Outputs = typename Cell::Outputs;
  static constexpr int kL = kLanes<T>;

  // One row of the tensors.
  struct Row {
    const T* saved[kMaxSavedActivations];
    const T* saved_grad[kMaxSavedActivations];
    const T* h_grad;
    const T* cs_prev;
    T* cs_prev_grad;
    T* z_grad;  // of the four gates, H apart
  };

  Row RowOf(int64_t b) const {
    const auto at = [b](auto* data, int64_t stride) {
      return data ? data + b * stride : nullptr;
    };
    Row row;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      row.saved[k] = at(args_.saved.data[k], args_.saved.stride[k]);
      row.saved_grad[k] =
          at(args_.saved_grad.data[k], args_.saved_grad.stride[k]);
    }
    row.h_grad = at(args_.h_grad, args_.h_grad_stride);
    row.cs_prev = at(args_.c0.data, args_.c0.stride);
    row.cs_prev_grad = at(args_.c0_grad.data, args_.c0_grad.stride);
    row.z_grad = at(args_.z_grad, Cell::kGates * cell_);
    return row;
  }

  template <bool kPeephole>
  void RunUnits(int64_t begin, int64_t end) const {
    const int64_t whole = begin + (end - begin) / kL * kL;
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      T* sums = args_.weights_grad.peephole[p];
      for (int64_t u = begin; sums && u < end; ++u) sums[u] = 0;
    }
    for (int64_t b = 0; b < args_.sequence.batch; ++b) {
      const Row row = RowOf(b);
      for (int64_t u = begin; u < whole; u += kL) {
        RunVector<kPeephole>(row, u, std::integral_constant<int64_t, kL>());
      }
      if (whole < end) RunVector<kPeephole>(row, whole, end - whole);
    }
  }

  // `width` units of a row, at most a vector.
  template <bool kPeephole, class Width>
  TF_LSTM_OPS_INLINE void RunVector(const Row& row, int64_t u,
                                    Width width) const {
    const auto load = [u, width](const T* from) {
      return from ? LoadN(from + u, width) : V{};
    };
    Outputs y, grad;
    ForEachSaved<Cell>([&](auto k, auto member) {
      y.*member = load(row.saved[k]);
      grad.*member = load(row.saved_grad[k]);
    });
    grad.h = load(row.h_grad);
    const V before = load(row.cs_prev);
    V weights[Cell::kPreActivations] = {};
    for (int p = 0; kPeephole && p < Cell::kPreActivations; ++p) {
      weights[p] = load(args_.weights.peephole[p]);
    }
    typename Cell::Parameters with;
    if (kPeephole) with.peephole = weights;
    const typename Cell::Gradients d = Cell::Backward(y, before, grad, with);
    for (int p = 0; p < Cell::kPreActivations; ++p) {
      const int64_t block = args_.config.gate_order.block[p];
      StoreN(d.z[p], row.z_grad + block * cell_ + u, width);
    }
    if (row.cs_prev_grad) StoreN(d.state, row.cs_prev_grad + u, width);
    for (int p = 0; kPeephole && p < Cell::kPreActivations; ++p) {
      T* sums = args_.weights_grad.peephole[p];
      if (!sums) continue;
      const V state = p == Cell::kNewStatePeephole ? y.*Cell::kState : before;
      StoreN(load(sums) + d.z[p] * state, sums + u, width);
    }
  }

  const LayerBackward<T>& args_;
  const int64_t cell_;
  const int64_t group_;  // units of an item
};

template <class T>
void RunStepGradient(const LayerBackward<T>& args, int threads) {
  using Step = StepGradient<T>;
  Step step(args, threads);
  const Job job = {&step, 1,
                   [](const void* state, int64_t) {
                     return static_cast<const Step*>(state)->Items();
                   },
                   [](void* state, int64_t, int64_t item, int) {
                     static_cast<const Step*>(state)->Run(item);
                   }};
  RunJob(job, threads);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_STEP_GRADIENT_H_
