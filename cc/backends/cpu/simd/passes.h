// Runs passes as one job.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/forward.h"
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

// forward.cc and backward.cc compile the passes, once for all cells.
extern template void RunPasses(ForwardPass<float>* const*, int, int);
extern template void RunPasses(ForwardPass<double>* const*, int, int);
extern template void RunPasses(BackwardPass<float>* const*, int, int);
extern template void RunPasses(BackwardPass<double>* const*, int, int);

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PASSES_H_
