// BackwardEngine: the backward passes of one instruction set and one type.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_ENGINE_H_

#include "backends/cpu/memory/call_memory.h"
#include "backends/cpu/plan/backward_plan.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops {

// The arguments of the engine for a backward pass, with states and multipliers
// as in EngineForward. In: h0_grad and c0_grad hold the gradients with respect
// to the final states. Out: they hold the gradients with respect to the initial
// states; h0_grad is undefined unless wants_h0_grad is set. z_grad is null.
template <class T>
struct EngineBackward : LayerBackward<T> {
  const PackedSequence* valid = nullptr;
  bool wants_h0_grad = true;
};

// A pass and its plan.
template <class T>
struct PlannedBackward {
  const EngineBackward<T>* layer = nullptr;
  cpu::BackwardPlan plan;
};

template <class T>
struct BackwardEngine {
  cpu::VectorTraits traits;
  // BackwardWay::kSequence: computes passes side by side, 1 or kMaxTogether of
  // them.
  void (*run)(const PlannedBackward<T>* passes, int count,
              cpu::CallMemory* memory);
  // BackwardWay::kStepGradient, with the arguments of the caller.
  void (*run_step)(const LayerBackward<T>& layer, int threads);
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_ENGINE_H_
