#include "backends/metal/step_loop.h"

namespace tf_lstm_ops::metal {
namespace {

// Steps [start, start + length) of each sequence.
Values SliceSteps(const Values& sequences, int64_t start, int64_t length) {
  Values slices;
  for (const Value& sequence : sequences) {
    slices.push_back(Slice(sequence, 0, start, length));
  }
  return slices;
}

Value Tensor(MPSGraph* graph, MPSGraphTensor* tensor) { return {graph, tensor}; }

// A loop over chunks of sequences, each seen as [chunks, kChunk * B * width].
struct ChunkLoop {
  const StepLoop& steps;
  const Extents& widths;
  const StepFunction& step;
  int64_t chunks;
  std::vector<Extents> state_shapes;
  Values sequences;

  MPSGraph* graph() const { return steps.graph; }
  int64_t ChunkSize(int64_t width) const { return kChunk * steps.batch * width; }

  Extents OutputShape(size_t k) const { return {chunks, ChunkSize(widths[k])}; }

  // A tensor with a shape that MPSGraph knows. Its headers promise only the
  // number and the types of a loop's arguments and results.
  Value Shaped(MPSGraphTensor* tensor, const Extents& shape) const {
    return Tensor(graph(), [graph() reshapeTensor:tensor withShape:MakeShape(shape) name:nil]);
  }

  // The chunk at `index`, [kChunk, B, width].
  Value Gather(const Value& sequence, MPSGraphTensor* index) const {
    if (sequence.is_scalar()) return sequence;
    const int64_t width = sequence.dim(1) / ChunkSize(1);
    return Reshape(Tensor(graph(), [graph() gatherWithUpdatesTensor:sequence.tensor()
                                                      indicesTensor:index
                                                               axis:0
                                                    batchDimensions:0
                                                               name:nil]),
                   {kChunk, steps.batch, width});
  }

  // `outputs` with the chunk at `index` replaced.
  Value Scatter(const Value& outputs, const Value& chunk, MPSGraphTensor* index) const {
    const Value update = Reshape(chunk, {1, outputs.dim(1)});
    return Tensor(graph(), [graph() scatterWithDataTensor:outputs.tensor()
                                            updatesTensor:update.tensor()
                                            indicesTensor:index
                                                     axis:0
                                                     mode:MPSGraphScatterModeSet
                                                     name:nil]);
  }

  // The index of the chunk of an iteration, [1].
  MPSGraphTensor* ChunkIndex(MPSGraphTensor* iteration) const {
    const Value counted = Tensor(graph(), [graph() castTensor:iteration
                                                       toType:MPSDataTypeInt32
                                                         name:@"iteration"]);
    MPSGraphTensor* index = Shaped(counted.tensor(), {1}).tensor();
    if (!steps.reversed) return index;
    MPSGraphTensor* last = [graph() constantWithScalar:static_cast<double>(chunks - 1)
                                              dataType:MPSDataTypeInt32];
    return [graph() subtractionWithPrimaryTensor:last secondaryTensor:index name:nil];
  }

  // One iteration. The loop's arguments and results are the state, then the
  // outputs of all chunks.
  NSArray<MPSGraphTensor*>* Body(MPSGraphTensor* iteration,
                                 NSArray<MPSGraphTensor*>* arguments) const {
    MPSGraphTensor* index = ChunkIndex(iteration);
    Values chunk, state, outputs;
    for (const Value& sequence : sequences) {
      chunk.push_back(Gather(sequence, index));
    }
    for (MPSGraphTensor* argument in arguments) {
      const bool is_state = state.size() < state_shapes.size();
      Values& all = is_state ? state : outputs;
      all.push_back(
          Shaped(argument, is_state ? state_shapes[all.size()] : OutputShape(all.size())));
    }
    const StepLoop unrolled(graph(), kChunk, steps.batch, steps.reversed);
    const StepResult after = unrolled.Run(chunk, state, widths, step);
    NSMutableArray* results = [NSMutableArray arrayWithCapacity:[arguments count]];
    for (size_t k = 0; k < state.size(); ++k) {
      [results addObject:Shaped(after.state[k].tensor(), state_shapes[k]).tensor()];
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Value scattered = Scatter(outputs[k], after.outputs[k], index);
      [results addObject:Shaped(scattered.tensor(), OutputShape(k)).tensor()];
    }
    return results;
  }

  // The loop's arguments before the first iteration.
  NSArray<MPSGraphTensor*>* InitialArguments(const Values& state) const {
    NSMutableArray* initial = [NSMutableArray array];
    for (const Value& value : state) [initial addObject:value.tensor()];
    for (size_t k = 0; k < widths.size(); ++k) {
      [initial addObject:BroadcastTo(graph(), 0, OutputShape(k)).tensor()];
    }
    return initial;
  }

  NSArray<MPSGraphTensor*>* Run(const Values& state) const {
    const ChunkLoop* self = this;  // a block would copy the object
    return [graph()
        forLoopWithNumberOfIterations:[graph() constantWithScalar:static_cast<double>(chunks)
                                                         dataType:MPSDataTypeInt32]
                 initialBodyArguments:InitialArguments(state)
                                 body:^(MPSGraphTensor* iteration,
                                        NSArray<MPSGraphTensor*>* arguments) {
                                   return self->Body(iteration, arguments);
                                 }
                                 name:nil];
  }
};

}  // namespace

StepResult StepLoop::Unroll(int64_t length, const Values& sequences, Values state,
                            const Extents& widths, const StepFunction& step) const {
  std::vector<Values> outputs(widths.size(), Values(length));  // by output, step
  for (int64_t s = 0; s < length; ++s) {
    const int64_t t = reversed ? length - 1 - s : s;
    Values inputs;
    for (const Value& row : SliceSteps(sequences, t, 1)) {
      inputs.push_back(row.is_scalar() ? row : Reshape(row, {batch, row.dim(2)}));
    }
    const StepResult after = step(inputs, state);
    for (size_t k = 0; k < state.size(); ++k) {
      state[k] = BroadcastTo(graph, after.state[k], state[k].shape());
    }
    for (size_t k = 0; k < widths.size(); ++k) {
      const Value output = BroadcastTo(graph, after.outputs[k], {batch, widths[k]});
      outputs[k][t] = Reshape(output, {1, batch, widths[k]});
    }
  }
  StepResult all = {state, {}};
  for (const Values& of_steps : outputs) {
    all.outputs.push_back(length == 0 ? Value() : Concat(of_steps, 0));
  }
  return all;
}

StepResult StepLoop::Loop(int64_t chunks, const Values& sequences, const Values& state,
                          const Extents& widths, const StepFunction& step) const {
  ChunkLoop loop = {*this, widths, step, chunks, {}, {}};
  for (const Value& value : state) loop.state_shapes.push_back(value.shape());
  for (const Value& sequence : sequences) {
    loop.sequences.push_back(sequence.is_scalar()
                                 ? sequence
                                 : Reshape(sequence, {chunks, loop.ChunkSize(sequence.dim(2))}));
  }
  StepResult all;
  for (MPSGraphTensor* result in loop.Run(state)) {
    if (all.state.size() < state.size()) {
      all.state.push_back(loop.Shaped(result, loop.state_shapes[all.state.size()]));
      continue;
    }
    const int64_t width = widths[all.outputs.size()];
    all.outputs.push_back(loop.Shaped(result, {chunks * kChunk, batch, width}));
  }
  return all;
}

StepResult StepLoop::Run(const Values& sequences, const Values& state, const Extents& widths,
                         const StepFunction& step) const {
  const int64_t chunks = time / kChunk, looped = chunks * kChunk;
  if (chunks < 2) return Unroll(time, sequences, state, widths, step);
  const auto rest = [&](const Values& before) {
    return Unroll(time - looped, SliceSteps(sequences, looped, time - looped), before, widths,
                  step);
  };
  const auto loop = [&](const Values& before) {
    return Loop(chunks, SliceSteps(sequences, 0, looped), before, widths, step);
  };
  const StepResult first = reversed ? rest(state) : loop(state);
  const StepResult second = reversed ? loop(first.state) : rest(first.state);
  if (looped == time) return reversed ? second : first;
  const StepResult &early = reversed ? second : first, &late = reversed ? first : second;
  StepResult all = {second.state, {}};
  for (size_t k = 0; k < widths.size(); ++k) {
    all.outputs.push_back(Concat({early.outputs[k], late.outputs[k]}, 0));
  }
  return all;
}

}  // namespace tf_lstm_ops::metal
