// The engine compiled for one instruction set; see backends/cpu/README.md. With
// TF_LSTM_OPS_SESSIONS_ONLY it has only what the library of sessions keeps,
// which takes less than half of the time.
#include <cassert>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/backward/layer_norm.h"
#include "backends/cpu/simd/backward/phases.h"
#include "backends/cpu/simd/backward/second_product.h"
#include "backends/cpu/simd/backward/step.h"
#include "backends/cpu/simd/backward/step_gradient.h"
#include "backends/cpu/simd/forward/layer_norm.h"
#include "backends/cpu/simd/forward/one_row.h"
#include "backends/cpu/simd/forward/one_step.h"
#include "backends/cpu/simd/forward/phases.h"
#include "backends/cpu/simd/forward/step.h"
#include "backends/cpu/simd/vector/hash.h"
#include "backends/cpu/simd/vector/measured_loops.h"
#include "backends/cpu/simd/vector/product.h"
#include "backends/cpu/team/thread_team.h"
#include "backends/cpu/training_engine.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// The functions of a cell.
template <class T>
ForwardFunctions<T> ForwardFunctionsOf(CellKind cell) {
  return WithCell<VecMath<T>>(cell, [](auto of) {
    using Cell = typename decltype(of)::Cell;
    ForwardFunctions<T> functions = {};
    functions.run_slice = &ForwardStep<T, Cell>::RunSlice;
    functions.run_step = &ForwardStep<T, Cell>::RunStepOfUnits;
    if constexpr (Cell::kReducesRows) {
      functions.apply_cell_to_rows =
          &LayerNormForward<T, Cell>::ApplyCellToRows;
    } else if constexpr (Cell::kResetsBefore) {
      functions.finish_step = &SecondProductForward<T, Cell>::FinishStep;
    }
    return functions;
  });
}

template <class T>
BackwardFunctions<T> BackwardFunctionsOf(CellKind cell) {
  return WithCell<VecMath<T>>(cell, [](auto of) {
    using Cell = typename decltype(of)::Cell;
    using OfCell = BackwardStep<T, Cell>;
    BackwardFunctions<T> functions = {};
    functions.run_slice = &OfCell::RunSlice;
    if constexpr (Cell::kReducesRows) {
      functions.run_rows = &LayerNormBackward<T, Cell>::RunRows;
      functions.write_sums = &LayerNormBackward<T, Cell>::WriteSums;
    } else if constexpr (Cell::kResetsBefore) {
      functions.begin_cells = &SecondProductBackward<T, Cell>::BeginCells;
      functions.run_cells = &SecondProductBackward<T, Cell>::RunCells;
    } else {
      functions.run_cells = &OfCell::RunCells;
    }
    if constexpr (Cell::kHasOutputGate) {
      functions.restore_h = &OfCell::RestoreH;
    }
    return functions;
  });
}

// Null for a cell that OneStep does not serve.
template <class T>
typename OneStep<T>::ApplyCell ApplyCellOf(CellKind cell) {
  return WithCell<VecMath<T>>(cell, [](auto of) {
    using Cell = typename decltype(of)::Cell;
    typename OneStep<T>::ApplyCell apply = nullptr;
    if constexpr (CellShapeOf<Cell>().all_see_both()) {
      apply = &ApplyCellToStep<T, Cell>;
    }
    return apply;
  });
}

// Gives one or two passes scratch memory, and runs them side by side.
template <class T, class Pass, int kCount>
void RunPasses(Pass* const (&passes)[kCount], cpu::CallMemory* memory) {
  assert(passes[kCount - 1]->args.config.cell == passes[0]->args.config.cell);
  int threads = 1;
  for (Pass* pass : passes) threads = Max(threads, pass->threads());
  Scratch<T> size(nullptr);
  for (Pass* pass : passes) pass->Place(&size, threads);
  Scratch<T> scratch(static_cast<T*>(memory->Get(size.used() * sizeof(T))));
  Job jobs[kCount];
  for (int k = 0; k < kCount; ++k) {
    passes[k]->Place(&scratch, threads);
    jobs[k] = {passes[k], passes[k]->Phases(),
               [](const void* state, int64_t phase) {
                 return Items(*static_cast<const Pass*>(state), phase);
               },
               [](void* state, int64_t phase, int64_t item, int thread) {
                 Run(*static_cast<const Pass*>(state), phase, item, thread);
               }};
  }
  assert(scratch.used() == size.used());
  RunJobs(jobs, kCount, threads);
}

// Passes of one class, side by side.
template <class T, class Pass, class Planned, class Functions>
void RunPlanned(const Planned* planned, int count, const Functions& functions,
                cpu::CallMemory* memory) {
  Pass first(planned[0], functions);
  if (count == 1) return RunPasses<T, Pass>({&first}, memory);
  Pass second(planned[1], functions);
  RunPasses<T, Pass>({&first, &second}, memory);
}

template <class T>
void RunSequence(const PlannedForward<T>* planned, int count,
                 cpu::CallMemory* memory) {
  RunPlanned<T, Forward<T>>(planned, count,
                            ForwardFunctionsOf<T>(planned->layer->config.cell),
                            memory);
}

template <class T>
void RunOneStep(const PlannedForward<T>* planned, int count,
                cpu::CallMemory* memory) {
  RunPlanned<T, OneStep<T>>(
      planned, count, ApplyCellOf<T>(planned->layer->config.cell), memory);
}

template <class T>
int64_t SequenceMemory(const PlannedForward<T>& pass,
                       const cpu::ForwardProblem& problem, int threads) {
  const auto functions = ForwardFunctionsOf<T>(pass.layer->config.cell);
  return Forward<T>(pass, functions).MostScratch(problem, threads);
}

int64_t OneRowMemory(const PlannedForward<float>& pass,
                     const cpu::ForwardProblem&, int) {
  return RowMemory(pass);
}

template <class T>
void RunBackward(const PlannedBackward<T>* planned, int count,
                 cpu::CallMemory* memory) {
  RunPlanned<T, Backward<T>>(
      planned, count, BackwardFunctionsOf<T>(planned->layer->config.cell),
      memory);
}

#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
template <class T, class F>
void MapLanes(const T* x, T* y, int64_t n, const F& f) {
  for (int64_t k = 0; k < n; k += kLanes<T>) {
    StoreN(f(LoadN(x + k, n - k)), y + k, n - k);
  }
}

// A loop for each function.
void Activate(Activation f, const float* x, float* y, int64_t n) {
  switch (f) {
#define TF_LSTM_OPS_ACTIVATE(name, text)                                      \
  case Activation::name:                                                      \
    return MapLanes(x, y, n, [](auto v) {                                     \
      return ActivationMath<VecMath<float>>::ActivateInline(Activation::name, \
                                                            v);               \
    });
    TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_ACTIVATE)
    TF_LSTM_OPS_ACTIVATE(kHardSigmoidFifth, )
#undef TF_LSTM_OPS_ACTIVATE
    default:  // those with numbers are of cells only
      return;
  }
}

void Exp(const float* x, float* y, int64_t n) {
  MapLanes(x, y, n, [](auto v) { return VecMath<float>::Exp(v); });
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
#endif

template <class T>
constexpr cpu::VectorTraits TraitsOf() {
  cpu::VectorTraits traits;
  traits.lanes = kLanes<T>;
  traits.element_bytes = sizeof(T);
  traits.dots_pairs = kDotsPairs;
  traits.has_tiles = kTiles;
  traits.has_many_registers = kRegisters == 32;
  traits.pairs_speed = SpeedOf(WeightFormat::kBFloat16Pairs);
  return traits;
}

template <class T>
constexpr ForwardEngine<T> ForwardEngineOf() {
  using cpu::ForwardWay;
  ForwardEngine<T> engine = {};
  engine.traits = TraitsOf<T>();
  engine.way(ForwardWay::kOneStep) = {&RunOneStep<T>, nullptr};
  if constexpr (std::is_same_v<T, float>) {
    engine.way(ForwardWay::kOneRow) = {&RunOneRow, &OneRowMemory};
  }
  engine.way(ForwardWay::kSequence) = {&RunSequence<T>, &SequenceMemory<T>};
  engine.pack = &PackAll<T>;
  return engine;
}

#if !defined(TF_LSTM_OPS_SESSIONS_ONLY)
template <class T>
constexpr BackwardEngine<T> BackwardEngineOf() {
  BackwardEngine<T> engine = {};
  engine.traits = TraitsOf<T>();
  engine.run = &RunBackward<T>;
  engine.run_step = &RunStepGradient<T>;
  return engine;
}
#endif

constexpr Engine EngineOf() {
  Engine engine = {};
  engine.forward = ForwardEngineOf<float>();
  // The library of sessions then does not contain it.
  engine.forward.way(cpu::ForwardWay::kOneStep) = {};
  engine.set_row_layer = &SetRowLayer;
  engine.pack_product = &PackProduct;
  engine.run_product = &RunProduct;
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
  engine.hash = &HashBytes;
  engine.activate = &Activate;
  engine.exp = &Exp;
  engine.widen_half = &Widen<Half>;
  engine.widen_bfloat16 = &Widen<BFloat16>;
  engine.narrow_half = &Narrow<Half>;
  engine.narrow_bfloat16 = &Narrow<BFloat16>;
  engine.multiply_add = &MultiplyAdd;
  engine.sum = &Sum;
#endif
  return engine;
}

#if !defined(TF_LSTM_OPS_SESSIONS_ONLY) && !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
constexpr TrainingEngine TrainingEngineOf() {
  TrainingEngine engine = {};
  engine.forward_float = ForwardEngineOf<float>();
  engine.forward_double = ForwardEngineOf<double>();
  engine.backward_float = BackwardEngineOf<float>();
  engine.backward_double = BackwardEngineOf<double>();
  return engine;
}
#endif

#if !defined(TF_LSTM_OPS_SESSIONS_ONLY)
constexpr BFloat16Engine BFloat16EngineOf() {
  BFloat16Engine engine = {};
  engine.forward = ForwardEngineOf<float>();
  engine.backward = BackwardEngineOf<float>();
  return engine;
}
#endif

}  // namespace

// Constants, so that no code runs before the instruction set is selected.
extern const Engine kEngine;
constexpr Engine kEngine = EngineOf();
#if !defined(TF_LSTM_OPS_SESSIONS_ONLY) && !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
extern const TrainingEngine kTraining;
constexpr TrainingEngine kTraining = TrainingEngineOf();
#endif
#if !defined(TF_LSTM_OPS_SESSIONS_ONLY)
extern const BFloat16Engine kBFloat16;
constexpr BFloat16Engine kBFloat16 = BFloat16EngineOf();
#endif

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
