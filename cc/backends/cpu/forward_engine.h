// ForwardEngine: the forward passes of one instruction set and one type.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_

#include <cstdint>

#include "backends/cpu/memory/call_memory.h"
#include "backends/cpu/plan/forward_plan.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops {

// The arguments of the engine for a forward pass. States are contiguous, [B, P]
// and [B, H]. Multipliers are contiguous, [G, B, .]. The engine reads `valid`
// instead of `sequence`. It writes neither final_h nor masked steps.
template <class T>
struct EngineForward : LayerForward<T> {
  const PackedSequence* valid = nullptr;
};

// A pass, its plan, and its packed weights.
template <class T>
struct PlannedForward {
  const EngineForward<T>* layer = nullptr;
  cpu::ForwardPlan plan;
  // Memory of the packed weights that the caller keeps, and whether it holds
  // them. Null: the pass packs them into memory of its own.
  T* packed = nullptr;
  bool is_packed = false;
};

// Computes passes side by side, 1 or kMaxTogether of them, whose plans have the
// same way.
template <class T>
using ForwardFunction = void (*)(const PlannedForward<T>* passes, int count,
                                 cpu::CallMemory* memory);

// A way, as an instruction set computes it. cpu::Way is the other half, which
// no type and no instruction set changes.
template <class T>
struct ForwardWayFunctions {
  ForwardFunction<T> run = nullptr;  // null: no plan for the engine has the way
  // Elements of memory that suffice for any pass by this way of the layer of
  // `pass` on at most `threads` threads, and of no more rows and steps than
  // `problem`. Null: no frozen layer takes the way.
  int64_t (*most_memory)(const PlannedForward<T>& pass,
                         const cpu::ForwardProblem& problem,
                         int threads) = nullptr;
};

template <class T>
struct ForwardEngine {
  cpu::VectorTraits traits;
  ForwardWayFunctions<T> ways[cpu::kForwardWays];  // by ForwardWay
  // Packs all weights, unless `packed` is null. Returns the number of elements
  // of the packed weights.
  int64_t (*pack)(const LayerDirection<T>& layer, cpu::WeightFormat format,
                  T* packed);

  constexpr const ForwardWayFunctions<T>& way(cpu::ForwardWay way) const {
    return ways[static_cast<int>(way)];
  }
  constexpr ForwardWayFunctions<T>& way(cpu::ForwardWay way) {
    return ways[static_cast<int>(way)];
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FORWARD_ENGINE_H_
