// The entry points of the engine for one kind of cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/packed_weights.h"
#include "backends/cpu/simd/cell_backward.h"
#include "backends/cpu/simd/cell_forward.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Runs passes side by side: a phase has the items of all passes.
template <class Pass>
struct Together {
  Pass* const* passes;
  int count;

  void Place(Scratch<typename Pass::Element>* scratch, int threads) {
    for (int k = 0; k < count; ++k) passes[k]->Place(scratch, threads);
  }
  int64_t Phases() const {
    int64_t phases = 0;
    for (int k = 0; k < count; ++k) {
      if (passes[k]->Phases() > phases) phases = passes[k]->Phases();
    }
    return phases;
  }
  int64_t ItemsOf(int k, int64_t phase) const {
    return phase < passes[k]->Phases() ? passes[k]->Items(phase) : 0;
  }
  int64_t Items(int64_t phase) const {
    int64_t items = 0;
    for (int k = 0; k < count; ++k) items += ItemsOf(k, phase);
    return items;
  }
  void Run(int64_t phase, int64_t item, int thread) {
    int k = 0;
    for (; item >= ItemsOf(k, phase); ++k) item -= ItemsOf(k, phase);
    passes[k]->Run(phase, item, thread);
  }
};

template <class Pass>
void RunPasses(Pass* const* passes, int count, int threads) {
  using T = typename Pass::Element;
  using All = Together<Pass>;
  All all = {passes, count};
  Scratch<T> size(nullptr);
  all.Place(&size, threads);
  const AlignedBuffer memory(size.used() * sizeof(T));
  Scratch<T> scratch(static_cast<T*>(memory.data()));
  all.Place(&scratch, threads);
  const Job job = {&all, all.Phases(),
                   [](const void* state, int64_t phase) {
                     return static_cast<const All*>(state)->Items(phase);
                   },
                   [](void* state, int64_t phase, int64_t item, int thread) {
                     static_cast<All*>(state)->Run(phase, item, thread);
                   }};
  RunJob(job, threads);
}

extern template void RunPasses(ForwardPass<float>* const*, int, int);
extern template void RunPasses(ForwardPass<double>* const*, int, int);
extern template void RunPasses(BackwardPass<float>* const*, int, int);
extern template void RunPasses(BackwardPass<double>* const*, int, int);

template <class T, template <class> class CellOf>
void ForwardOf(const EngineForward<T>* layers, int count, int threads,
               cpu::PackedWeights* packed) {
  const bool filled = packed && packed->filled();
  CellForward<T, CellOf> first(layers[0], threads, packed != nullptr, filled);
  CellForward<T, CellOf> last(layers[count - 1], threads, false, false);
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
  CellBackward<T, CellOf> first(layers[0], threads);
  CellBackward<T, CellOf> last(layers[count - 1], threads);
  BackwardPass<T>* const passes[] = {&first, &last};
  RunPasses(passes, count, threads);
}

// Each cell has a source file of its own, so that the files compile in
// parallel; what does not depend on the cell is compiled by forward.cc,
// backward.cc and gemm.cc. An instruction set that only adds bfloat16 products
// to another one has the float passes alone.
// NOLINTBEGIN(bugprone-macro-parentheses): `specifier` is none or extern.
#define TF_LSTM_OPS_PASSES(specifier, T, Cell)                               \
  specifier template void ForwardOf<T, Cell>(const EngineForward<T>*, int,   \
                                             int, cpu::PackedWeights*);      \
  specifier template void BackwardOf<T, Cell>(const EngineBackward<T>*, int, \
                                              int)
#if defined(TF_LSTM_OPS_DOTS_BFLOAT16)
#define TF_LSTM_OPS_CELL(specifier, Cell) \
  TF_LSTM_OPS_PASSES(specifier, float, Cell)
#else
#define TF_LSTM_OPS_CELL(specifier, Cell)     \
  TF_LSTM_OPS_PASSES(specifier, float, Cell); \
  TF_LSTM_OPS_PASSES(specifier, double, Cell)
#endif
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
