// The engine compiled for one instruction set; see backends/cpu/README.md.
#include "backends/cpu/engine.h"

#include "backends/cpu/simd/cell_backward.h"
#include "backends/cpu/simd/cell_forward.h"
#include "backends/cpu/simd/passes.h"
#include "backends/cpu/simd/row_backward.h"
#include "backends/cpu/simd/row_forward.h"
#include "backends/cpu/simd/step_gradient.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

template <class T, template <class> class CellOf>
void ForwardOf(const EngineForward<T>* layers, int count, int threads,
               cpu::PackedWeights* packed) {
  const bool filled = packed && packed->filled();
  using Pass =
      std::conditional_t<CellOf<VecMath<T>>::kReducesRows,
                         RowForward<T, CellOf>, CellForward<T, CellOf>>;
  Pass first(layers[0], threads, packed != nullptr, filled);
  Pass last(layers[count - 1], threads, false, false);
  if (packed) {
    Scratch<T> size(nullptr);
    first.PlaceWeights(&size);
    Scratch<T> memory(static_cast<T*>(packed->Memory(size.used() * sizeof(T))));
    first.PlaceWeights(&memory);
  }
  ForwardPass<T>* const passes[] = {&first, &last};
  RunPasses(passes, count, threads);
}

template <class T, template <class> class CellOf>
void BackwardOf(const EngineBackward<T>* layers, int count, int threads) {
  using Pass =
      std::conditional_t<CellOf<VecMath<T>>::kReducesRows,
                         RowBackward<T, CellOf>, CellBackward<T, CellOf>>;
  Pass first(layers[0], threads);
  Pass last(layers[count - 1], threads);
  BackwardPass<T>* const passes[] = {&first, &last};
  RunPasses(passes, count, threads);
}

template <class T>
void Forward(const EngineForward<T>* layers, int count, int threads,
             cpu::PackedWeights* packed) {
#define TF_LSTM_OPS_CASE(kind, Cell, ...) \
  case CellKind::kind:                    \
    return ForwardOf<T, Cell>(layers, count, threads, packed);
  switch (layers->config.cell) {
    TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE)
    TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_CASE)
  }
#undef TF_LSTM_OPS_CASE
}

template <class T>
void Backward(const EngineBackward<T>* layers, int count, int threads) {
#define TF_LSTM_OPS_CASE(kind, Cell, ...) \
  case CellKind::kind:                    \
    return BackwardOf<T, Cell>(layers, count, threads);
  switch (layers->config.cell) {
    TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE)
    TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_CASE)
  }
#undef TF_LSTM_OPS_CASE
}

#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
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

// The compiler makes vectors of these loops.
template <class T>
void Widen(const T* x, float* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k] = x[k].ToFloat();
}

template <class T>
void Narrow(const float* x, T* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k] = T::FromFloat(x[k]);
}

// As many chains as 16 registers hold: they hide the latency of two units.
float MultiplyAdd(int64_t rounds, int64_t* flops) {
  constexpr int kChains = 12;
  using V = VecT<float>;
  V sum[kChains];  // each begins otherwise, or compilers would keep one
  for (int c = 0; c < kChains; ++c) sum[c] = Broadcast(static_cast<float>(c));
  const V factor = Broadcast(0.5f), add = Broadcast(1.0f);
  for (int64_t k = 0; k < rounds; ++k) {
    for (V& chain : sum) chain = Fma(chain, factor, add);
  }
  *flops = 2 * rounds * kChains * kLanes<float>;
  V total = {};
  for (const V& chain : sum) total = total + chain;
  return total[0];
}

float Sum(const float* x, int64_t n) {
  constexpr int kChains = 8;
  constexpr int kL = kLanes<float>;
  VecT<float> sum[kChains] = {};
  for (int64_t k = 0; k + kChains * kL <= n; k += kChains * kL) {
    for (int c = 0; c < kChains; ++c) sum[c] = sum[c] + Load(x + k + c * kL);
  }
  VecT<float> total = {};
  for (const VecT<float>& chain : sum) total = total + chain;
  return total[0];
}

#endif
}  // namespace

#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
extern const Engine kEngine;
const Engine kEngine = {&Forward<float>,
                        &Forward<double>,
                        &Backward<float>,
                        &Backward<double>,
                        &Sigmoid,
                        &Tanh,
                        &Widen<Half>,
                        &Widen<BFloat16>,
                        &Narrow<Half>,
                        &Narrow<BFloat16>,
                        &MultiplyAdd,
                        &Sum,
                        &RunStepGradient<float>,
                        &RunStepGradient<double>};
#endif

extern const BFloat16Engine kBFloat16;
const BFloat16Engine kBFloat16 = {&Forward<float>, &Backward<float>};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
