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

// Builds one step. `inputs` are the step's rows of the sequences, [B, .] each.
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

  // `sequences` are [T, B, .] or scalars. `state` are tensors. `widths` are the
  // last dimensions of the outputs of `step`, in its order.
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
