// From the arguments of backward passes to their plans, and to the functions of
// the engine that compute them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_PASS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_PASS_H_

#include "backends/cpu/backward_engine.h"

namespace tf_lstm_ops {

// Whether a call is a step that wants no more than dz; see BackwardProblem.
template <class T>
bool WantsZGradOnly(const LayerBackward<T>& layer) {
  const Sequence& sequence = layer.sequence;
  const RnnWeights<T>& weights = layer.weights_grad;
  const bool is_step =
      sequence.time == 1 && sequence.steps == 1 && sequence.all_valid();
  const bool has_product = layer.h0_grad.data || layer.x_grad ||
                           weights.input || weights.recurrent ||
                           weights.input_bias || weights.recurrent_bias;
  return is_step && layer.saved.Has(kSavedCo) && !layer.saved.by_packed_row &&
         !has_product && layer.z_grad && !layer.final_h_grad.data &&
         !layer.final_c_grad.data;
}

// What the plan of a pass depends on.
template <class T>
cpu::BackwardProblem ProblemOf(const LayerBackward<T>& layer,
                               const PackedSequence& valid,
                               const BackwardEngine<T>& engine) {
  cpu::BackwardProblem problem(layer.config, engine.traits);
  problem.batch = valid.batch;
  problem.steps = valid.steps;
  problem.rows = valid.size();
  problem.has_input = static_cast<bool>(layer.weights.input);
  problem.wants_h0_grad = layer.h0_grad.data != nullptr;
  problem.wants_z_grad_only = WantsZGradOnly(layer);
  SetFormat(&problem);
  return problem;
}

// Runs planned passes of BackwardWay::kSequence, side by side or one after the
// other.
template <class T>
void RunBackward(const BackwardEngine<T>& engine,
                 const PlannedBackward<T>* passes, int count,
                 cpu::CallMemory* memory) {
  const int together = passes->plan.side_by_side ? count : 1;
  for (int k = 0; k < count; k += together) {
    engine.run(passes + k, together, memory);
  }
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_BACKWARD_PASS_H_
