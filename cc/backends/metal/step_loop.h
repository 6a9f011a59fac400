// StepLoop: the steps of a sequence as a graph.
//
// A sequence of fewer than 2 * kChunk steps is unrolled. A longer one is a loop
// over chunks of kChunk unrolled steps. See README.md for the reasons.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_STEP_LOOP_H_
#define TF_LSTM_OPS_BACKENDS_METAL_STEP_LOOP_H_

#include <functional>

#include "backends/metal/value.h"
#include "core/sequence.h"

namespace tf_lstm_ops::metal {

// Unrolled steps in one iteration of the loop.
constexpr int64_t kChunk = 32;

struct StepResult {
  Values state;    // after the step
  Values outputs;  // of one step [B, .] each, of all steps [T, B, .]
};

// Adds one step to the graph. `inputs` are the step's rows of the sequences,
// [B, .] each. `state` is the state before the step.
using StepFunction =
    std::function<StepResult(const Values& inputs, const Values& state)>;

struct StepLoop {
  MPSGraph* graph;
  int64_t time;
  int64_t batch;
  bool reversed;  // from the last step to the first

  // `sequence` as GraphSequence returns it.
  StepLoop(MPSGraph* graph, const Sequence& sequence, bool reversed)
      : StepLoop(graph, sequence.time, sequence.batch, reversed) {}
  StepLoop(MPSGraph* graph, int64_t time, int64_t batch, bool reversed)
      : graph(graph), time(time), batch(batch), reversed(reversed) {}

  // Adds all steps to the graph. Returns the state after the last one and the
  // outputs of all. `sequences` are tensors [T, B, .] or scalars. `state` has
  // tensors. `widths` has the last dimension of each output of `step`.
  StepResult Run(const Values& sequences, const Values& state,
                 const Extents& widths, const StepFunction& step) const;

 private:
  StepResult Unroll(int64_t length, const Values& sequences, Values state,
                    const Extents& widths, const StepFunction& step) const;
  StepResult Loop(int64_t chunks, const Values& sequences, const Values& state,
                  const Extents& widths, const StepFunction& step) const;
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_STEP_LOOP_H_
