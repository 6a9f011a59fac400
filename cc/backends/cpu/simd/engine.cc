// The engine compiled for one instruction set; see backends/cpu/README.md.
#include "backends/cpu/engine.h"

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/forward.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

template <class Pass>
void RunPass(Pass* pass, int threads) {
  const Job job = {pass, pass->Phases(),
                   [](const void* state, int64_t phase) {
                     return static_cast<const Pass*>(state)->Items(phase);
                   },
                   [](void* state, int64_t phase, int64_t item, int thread) {
                     static_cast<Pass*>(state)->Run(phase, item, thread);
                   }};
  RunJob(job, threads);
}

template <class T>
void Forward(const LstmForward<T>& args, int threads) {
  ForwardPass<T> pass(args);
  const AlignedBuffer scratch(pass.ScratchSize(threads) * sizeof(T));
  pass.PlaceScratch(static_cast<T*>(scratch.data()));
  RunPass(&pass, threads);
}

template <class T>
void Backward(const LstmBackward<T>& args, int threads) {
  BackwardPass<T> pass(args, threads);
  const AlignedBuffer scratch(pass.ScratchSize(threads) * sizeof(T));
  pass.PlaceScratch(static_cast<T*>(scratch.data()));
  RunPass(&pass, threads);
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
