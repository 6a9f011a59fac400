// The engine compiled for one instruction set; see ../README.md.
#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/engine.h"
#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/forward.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// A pass has its own copy per member, since it holds the member's scratch.
template <class Pass, class Args, class T>
void RunPass(const Args& args, int threads) {
  const AlignedBuffer scratch(Pass(args).ScratchSize(threads) * sizeof(T));
  struct Call {
    const Args& args;
    T* scratch;
  } call = {args, static_cast<T*>(scratch.data())};
  RunTeam(
      threads,
      [](void* argument, const Member& member) {
        const Call& c = *static_cast<Call*>(argument);
        Pass(c.args).Run(member, c.scratch);
      },
      &call);
}

template <class T>
void Forward(const LstmForward<T>& args, int threads) {
  RunPass<ForwardPass<T>, LstmForward<T>, T>(args, threads);
}

template <class T>
void Backward(const LstmBackward<T>& args, int threads) {
  RunPass<BackwardPass<T>, LstmBackward<T>, T>(args, threads);
}

template <class T, class F>
void MapLanes(const T* x, T* y, int64_t n, const F& f) {
  for (int64_t k = 0; k < n; k += kLanes<T>) {
    StoreN(f(LoadN(x + k, n - k)), y + k, n - k);
  }
}

void Sigmoid(const float* x, float* y, int64_t n) {
  MapLanes(x, y, n, [](auto v) { return VecMath<float>::Sigmoid(v); });
}

void Tanh(const float* x, float* y, int64_t n) {
  MapLanes(x, y, n, [](auto v) { return VecMath<float>::Tanh(v); });
}

}  // namespace

extern const Engine kEngine;
const Engine kEngine = {&Forward<float>,   &Forward<double>, &Backward<float>,
                        &Backward<double>, &Sigmoid,         &Tanh};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
