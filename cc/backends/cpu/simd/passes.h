// The entry points of the engine for one cell.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/packed_weights.h"
#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/forward.h"
#include "backends/cpu/thread_team.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, class Pass>
void RunPass(Pass* pass, int threads) {
  Scratch<T> count(nullptr);
  pass->Place(&count, threads);
  const AlignedBuffer memory(count.used() * sizeof(T));
  Scratch<T> scratch(static_cast<T*>(memory.data()));
  pass->Place(&scratch, threads);
  const Job job = {pass, pass->Phases(),
                   [](const void* state, int64_t phase) {
                     return static_cast<const Pass*>(state)->Items(phase);
                   },
                   [](void* state, int64_t phase, int64_t item, int thread) {
                     static_cast<Pass*>(state)->Run(phase, item, thread);
                   }};
  RunJob(job, threads);
}

template <class T, template <class> class CellOf>
void ForwardOf(const RnnForward<T>& args, int threads,
               cpu::PackedWeights* packed) {
  const bool filled = packed && packed->filled();
  ForwardPass<T, CellOf> pass(args, threads, packed != nullptr, filled);
  if (packed) {
    Scratch<T> count(nullptr);
    pass.PlaceWeights(&count);
    Scratch<T> memory(
        static_cast<T*>(packed->Memory(count.used() * sizeof(T))));
    pass.PlaceWeights(&memory);
  }
  RunPass<T>(&pass, threads);
}

template <class T, template <class> class CellOf>
void BackwardOf(const RnnBackward<T>& args, int threads) {
  BackwardPass<T, CellOf> pass(args, threads);
  RunPass<T>(&pass, threads);
}

// Each cell has a source file of its own, so that they compile side by side.
// NOLINTBEGIN(bugprone-macro-parentheses): `specifier` is none or extern.
#define TF_LSTM_OPS_PASSES(specifier, T, Cell)                          \
  specifier template void ForwardOf<T, Cell>(const RnnForward<T>&, int, \
                                             cpu::PackedWeights*);      \
  specifier template void BackwardOf<T, Cell>(const RnnBackward<T>&, int)
#define TF_LSTM_OPS_CELL(specifier, Cell)     \
  TF_LSTM_OPS_PASSES(specifier, float, Cell); \
  TF_LSTM_OPS_PASSES(specifier, double, Cell)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
