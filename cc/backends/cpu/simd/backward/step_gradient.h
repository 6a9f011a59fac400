// StepGradient: the backward pass of one LSTM step without matrix products, for
// LSTMBlockCellGrad. It reads and writes each element of the activations and of
// their gradients once.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_GRADIENT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_GRADIENT_H_

#include "backends/cpu/simd/vector/cell.h"
#include "backends/cpu/simd/vector/gemm.h"
#include "backends/cpu/team/thread_team.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// `args` is a step whose plan is cpu::BackwardWay::kStepGradient. Row b of the
// tensors is row b of the batch. An item is a range of units of all rows, so
// the sums over the rows do not depend on the number of threads.
template <class T>
struct StepGradient {
  using V = VecT<T>;
  using Cell = LstmCell<VecMath<T>>;
  static constexpr int kL = kLanes<T>;
  static constexpr int kParts = Cell::kPreActivations;

  const LayerBackward<T>& args;

  int64_t cell_size() const { return args.config.cell_size; }

  template <bool kPeephole>
  void Run(int64_t begin, int64_t end) const {
    const int64_t whole = begin + (end - begin) / kL * kL;
    for (T* sums : args.weights_grad.peephole) {
      for (int64_t u = begin; sums && u < end; ++u) sums[u] = 0;
    }
    for (int64_t b = 0; b < args.sequence.batch; ++b) {
      for (int64_t u = begin; u < whole; u += kL) {
        RunVector<kPeephole>(b, u, std::integral_constant<int64_t, kL>());
      }
      if (whole < end) RunVector<kPeephole>(b, whole, end - whole);
    }
  }

  // `width` units of a row, at most a vector.
  template <bool kPeephole, class Width>
  TF_LSTM_OPS_INLINE void RunVector(int64_t b, int64_t u, Width width) const {
    const auto load = [b, u, width](const T* from, int64_t stride) {
      return from ? LoadN(from + b * stride + u, width) : V{};
    };
    typename Cell::Outputs y, grad;
    ForEachSaved<Cell>([&](auto k, auto member) {
      y.*member = LoadSaved(args.saved, k, b, b, u, width);
      grad.*member = LoadSaved(args.saved_grad, k, b, b, u, width);
    });
    grad.h = load(args.h_grad, args.h_grad_stride);
    const V before = load(args.c0.data, args.c0.stride);
    V weights[kParts] = {};
    for (int p = 0; kPeephole && p < kParts; ++p) {
      weights[p] = load(args.weights.peephole[p], 0);
    }
    typename Cell::Parameters with;
    if (kPeephole) with.peephole = weights;
    const typename Cell::Gradients d = Cell::Backward(y, before, grad, with);
    T* z_grad = args.z_grad + b * kParts * cell_size() + u;
    for (int p = 0; p < kParts; ++p) {
      const int64_t block = args.config.gate_order.block[p];
      StoreN(d.z[p], z_grad + block * cell_size(), width);
    }
    const States<T>& c0_grad = args.c0_grad;
    if (c0_grad.data) {
      StoreN(d.state, c0_grad.data + b * c0_grad.stride + u, width);
    }
    for (int p = 0; kPeephole && p < kParts; ++p) {
      T* sums = args.weights_grad.peephole[p];
      if (!sums) continue;
      const V state = p == Cell::kNewStatePeephole ? y.*Cell::kState : before;
      StoreN(load(sums, 0) + d.z[p] * state, sums + u, width);
    }
  }
};

template <class T>
void RunStepGradient(const LayerBackward<T>& args, int threads) {
  using Step = StepGradient<T>;
  const int64_t vectors = CeilDiv(args.config.cell_size, kLanes<T>);
  const Step step = {args};
  const int64_t group = kLanes<T> * CeilDiv(vectors, threads);
  const int64_t size = args.config.cell_size;
  auto run = &Step::template Run<false>;
  if (args.weights.has_peephole()) run = &Step::template Run<true>;
  RunItems(CeilDiv(size, group), threads, [&](int64_t item, int) {
    (step.*run)(item * group, Min((item + 1) * group, size));
  });
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STEP_GRADIENT_H_
