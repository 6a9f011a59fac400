// The engine compiled for one instruction set; see backends/cpu/README.md.
#include <cassert>

#include "backends/cpu/engine.h"
#include "backends/cpu/roofline_loops.h"
#include "backends/cpu/simd/backward.h"
#include "backends/cpu/simd/backward_phases.h"
#include "backends/cpu/simd/forward.h"
#include "backends/cpu/simd/forward_phases.h"
#include "backends/cpu/simd/hash.h"
#include "backends/cpu/simd/layer_norm_backward.h"
#include "backends/cpu/simd/layer_norm_forward.h"
#include "backends/cpu/simd/one_row.h"
#include "backends/cpu/simd/product.h"
#include "backends/cpu/simd/second_product.h"
#include "backends/cpu/simd/step_gradient.h"
#include "backends/cpu/thread_team.h"
#include "backends/cpu/training_engine.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {
namespace {

// The functions of a cell. Those of the passes are in tables of their own, so
// that a library that has one pass only does not contain the other.
template <class T, class Cell>
constexpr ForwardFunctions<T> ForwardFunctionsOf() {
  using OfCell = ForwardStep<T, Cell>;
  ForwardFunctions<T> functions = {};
  functions.shape = kShapeOf<Cell>;
  functions.run_slice = &OfCell::RunSlice;
  functions.run_step = &OfCell::RunStepOfUnits;
  if constexpr (Cell::kReducesRows) {
    functions.apply_cell_to_rows = &LayerNormForward<T, Cell>::ApplyCellToRows;
  } else if constexpr (Cell::kResetsBefore) {
    functions.finish_step = &SecondProductForward<T, Cell>::FinishStep;
  }
  return functions;
}

template <class T, class Cell>
constexpr BackwardFunctions<T> BackwardFunctionsOf() {
  using OfCell = BackwardStep<T, Cell>;
  BackwardFunctions<T> functions = {};
  functions.shape = kShapeOf<Cell>;
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
}

// A case of the switches below, whose table is TF_LSTM_OPS_TABLE.
#define TF_LSTM_OPS_CASE(kind, Cell, ...)                                 \
  case CellKind::kind: {                                                  \
    static constexpr auto kOf = TF_LSTM_OPS_TABLE<T, Cell<VecMath<T>>>(); \
    return kOf;                                                           \
  }
#define TF_LSTM_OPS_ALL_CASES         \
  TF_LSTM_OPS_CELLS(TF_LSTM_OPS_CASE) \
  TF_LSTM_OPS_CPU_CELLS(TF_LSTM_OPS_CASE)

template <class T>
const ForwardFunctions<T>& ForwardOf(CellKind cell) {
#define TF_LSTM_OPS_TABLE ForwardFunctionsOf
  switch (cell) { TF_LSTM_OPS_ALL_CASES }
#undef TF_LSTM_OPS_TABLE
  __builtin_unreachable();
}

template <class T>
const BackwardFunctions<T>& BackwardOf(CellKind cell) {
#define TF_LSTM_OPS_TABLE BackwardFunctionsOf
  switch (cell) { TF_LSTM_OPS_ALL_CASES }
#undef TF_LSTM_OPS_TABLE
  __builtin_unreachable();
}
#undef TF_LSTM_OPS_ALL_CASES
#undef TF_LSTM_OPS_CASE

// Gives one or two passes scratch memory, and runs them side by side.
template <class T, class Pass, int kCount>
void RunPasses(Pass* const (&passes)[kCount], cpu::CallMemory* memory) {
  assert(passes[kCount - 1]->args.config.cell == passes[0]->args.config.cell);
  int threads = 1;
  for (Pass* pass : passes) threads = Max(threads, pass->schedule.threads());
  Scratch<T> size(nullptr);
  for (Pass* pass : passes) pass->Place(&size, threads);
  Scratch<T> scratch(static_cast<T*>(memory->Get(size.used() * sizeof(T))));
  Job jobs[kCount];
  for (int k = 0; k < kCount; ++k) {
    passes[k]->Place(&scratch, threads);
    jobs[k] = {passes[k], passes[k]->schedule.Phases(),
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

// Elements of scratch memory that suffice for a pass of no more rows and steps.
template <class T>
int64_t MostScratch(Forward<T>* pass, int threads) {
  const int64_t size = pass->MostScratch(threads);
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
  if constexpr (std::is_same_v<T, float>) {
    if (pass->has_row_layer()) return Max(size, RowMemory(pass));
  }
#endif
  return size;
}

template <class T>
void PlaceKeptWeights(Forward<T>* pass, cpu::PackedWeights* kept) {
  Scratch<T> size(nullptr);
  pass->PlaceWeights(&size);
  Scratch<T> memory(static_cast<T*>(kept->Memory(size.used() * sizeof(T))));
  pass->PlaceWeights(&memory);
}

// Gives passes with kept weights the memory of these weights, and runs them. If
// the caller keeps `memory`, later calls of `count` layers with no more rows
// and steps allocate nothing, whatever their schedules are.
template <class T, int kCount>
void RunForwardPasses(Forward<T>* const (&passes)[kCount],
                      cpu::PackedWeights* const* kept, int count, int threads,
                      cpu::CallMemory* memory) {
  for (int k = 0; k < kCount; ++k) {
    if (kept[k]) PlaceKeptWeights(passes[k], kept[k]);
  }
  cpu::CallMemory own;
  if (memory) {
    memory->Get(count * MostScratch(passes[0], threads) * sizeof(T));
  } else {
    memory = &own;
  }
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
  if constexpr (std::is_same_v<T, float> && kCount == 1) {
    Forward<T>* pass = passes[0];
    if (pass->is_row() && pass->packs_weights() &&
        pass->schedule.threads() == 1) {
      return RunAsRow(pass, memory);
    }
  }
#endif
  RunPasses<T, Forward<T>>(passes, memory);
}

template <class T>
void RunForward(const EngineForward<T>* layers, int count, int threads,
                cpu::PackedWeights* const* kept, cpu::CallMemory* memory) {
  const auto& functions = ForwardOf<T>(layers->config.cell);
  if (count == cpu::kMaxTogether) {
    Forward<T> first(layers[0], functions, threads, count, kept[0]);
    Forward<T> second(layers[1], functions, threads, count, kept[1]);
    if (cpu::RunsSideBySide(layers->config, sizeof(T),
                            first.schedule.threads())) {
      return RunForwardPasses<T>({&first, &second}, kept, count, threads,
                                 memory);
    }
  }
  for (int k = 0; k < count; ++k) {
    Forward<T> pass(layers[k], functions, threads, 1, kept[k]);
    RunForwardPasses<T>({&pass}, kept + k, count, threads, memory);
  }
}

template <class T>
void RunBackward(const EngineBackward<T>* layers, int count, int threads) {
  cpu::CallMemory memory;
  const auto& functions = BackwardOf<T>(layers->config.cell);
  if (count == cpu::kMaxTogether) {
    Backward<T> first(layers[0], functions, threads, count);
    Backward<T> second(layers[1], functions, threads, count);
    if (cpu::RunsSideBySide(layers->config, sizeof(T),
                            first.schedule.threads())) {
      return RunPasses<T, Backward<T>>({&first, &second}, &memory);
    }
  }
  for (int k = 0; k < count; ++k) {
    Backward<T> pass(layers[k], functions, threads, 1);
    RunPasses<T, Backward<T>>({&pass}, &memory);
  }
}

template <class T>
bool PacksWeights(const EngineForward<T>& layer) {
  return PacksWeights(layer, ForwardOf<T>(layer.config.cell).shape);
}

#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
int64_t MakeRowLayer(const EngineForward<float>& args,
                     cpu::PackedWeights* packed, float* memory, RowLayer* row) {
  Forward<float> pass(args, ForwardOf<float>(args.config.cell), 1, 1, packed);
  if (!pass.has_row_layer()) return 0;
  PlaceKeptWeights(&pass, packed);
  Scratch<float> scratch(memory);
  *row = MakeRowLayer(pass, &scratch, memory != nullptr);
  return scratch.used();
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
}  // namespace

#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
extern const Engine kEngine;
const Engine kEngine = {kLanes<float>,
                        &RunForward<float>,
                        &PacksWeights<float>,
                        &RowFunctionOf,
                        &MakeRowLayer,
                        &RowScratch,
                        &PackProduct,
                        &RunProduct,
                        &HashBytes,
                        &Sigmoid,
                        &Tanh,
                        &Widen<Half>,
                        &Widen<BFloat16>,
                        &Narrow<Half>,
                        &Narrow<BFloat16>,
                        &MultiplyAdd,
                        &Sum};

extern const TrainingEngine kTraining;
const TrainingEngine kTraining = {
    &RunForward<double>,  &PacksWeights<double>,   &RunBackward<float>,
    &RunBackward<double>, &RunStepGradient<float>, &RunStepGradient<double>};
#endif

extern const BFloat16Engine kBFloat16;
const BFloat16Engine kBFloat16 = {&RunForward<float>, &RunBackward<float>,
                                  &PacksWeights<float>, kDotsPairs};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
