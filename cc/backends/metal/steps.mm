#include "backends/metal/steps.h"

namespace tf_lstm_ops::metal {
namespace {

// Steps [start, start + length) of each sequence.
Values Part(const Values& sequences, int64_t start, int64_t length) {
  Values parts;
  for (const Value& sequence : sequences) {
    parts.push_back(Slice(sequence, 0, start, length));
  }
  return parts;
}

Value Tensor(MPSGraph* graph, MPSGraphTensor* tensor) { return {graph, tensor}; }

// A loop over chunks of sequences seen as [chunks, everything else].
struct ChunkLoop {
  const Steps& steps;
  const Extents& widths;
  const Step& step;
  int64_t chunks;
  Values sequences;  // [chunks, kChunk * B * .]

  MPSGraph* graph() const { return steps.graph; }
  int64_t ChunkSize(int64_t width) const { return kChunk * steps.batch * width; }

  // The chunk at `index`, [kChunk,B,.].
  Value Gather(const Value& sequence, MPSGraphTensor* index) const {
    if (sequence.is_number()) return sequence;
    const int64_t width = sequence.dim(1) / ChunkSize(1);
    return Reshape(Tensor(graph(), [graph() gatherWithUpdatesTensor:sequence.tensor()
                                                      indicesTensor:index
                                                               axis:0
                                                    batchDimensions:0
                                                               name:nil]),
                   {kChunk, steps.batch, width});
  }

  // `rows` with those of a chunk at `index`.
  Value Scatter(const Value& rows, const Value& chunk, MPSGraphTensor* index) const {
    const Value update = Reshape(chunk, {1, rows.dim(1)});
    return Tensor(graph(), [graph() scatterWithDataTensor:rows.tensor()
                                            updatesTensor:update.tensor()
                                            indicesTensor:index
                                                     axis:0
                                                     mode:MPSGraphScatterModeSet
                                                     name:nil]);
  }

  // Which chunk the loop is at, [1].
  MPSGraphTensor* ChunkIndex(MPSGraphTensor* iteration) const {
    const Value counted = Tensor(graph(), [graph() castTensor:iteration
                                                       toType:MPSDataTypeInt32
                                                         name:@"iteration"]);
    MPSGraphTensor* index = Reshape(counted, {1}).tensor();
    if (!steps.reversed) return index;
    MPSGraphTensor* last = [graph() constantWithScalar:static_cast<double>(chunks - 1)
                                              dataType:MPSDataTypeInt32];
    return [graph() subtractionWithPrimaryTensor:last secondaryTensor:index name:nil];
  }

  // The state, then the rows so far.
  NSArray<MPSGraphTensor*>* Body(MPSGraphTensor* iteration,
                                 NSArray<MPSGraphTensor*>* arguments) const {
    MPSGraphTensor* index = ChunkIndex(iteration);
    Values chunk, state, rows;
    for (const Value& sequence : sequences) {
      chunk.push_back(Gather(sequence, index));
    }
    for (MPSGraphTensor* argument in arguments) {
      Values& values = state.size() + widths.size() < [arguments count] ? state : rows;
      values.push_back(Tensor(graph(), argument));
    }
    const Steps unrolled = {graph(), kChunk, steps.batch, steps.reversed};
    const Stepped after = unrolled.Run(chunk, state, widths, step);
    NSMutableArray* results = [NSMutableArray arrayWithCapacity:[arguments count]];
    for (const Value& value : after.state) [results addObject:value.tensor()];
    for (size_t k = 0; k < rows.size(); ++k) {
      [results addObject:Scatter(rows[k], after.rows[k], index).tensor()];
    }
    return results;
  }
};

}  // namespace

Stepped Steps::Unroll(int64_t length, const Values& sequences, Values state, const Extents& widths,
                      const Step& step) const {
  std::vector<Values> rows(widths.size(), Values(length));  // by row, step
  for (int64_t s = 0; s < length; ++s) {
    const int64_t t = reversed ? length - 1 - s : s;
    Values now;
    for (const Value& row : Part(sequences, t, 1)) {
      now.push_back(row.is_number() ? row : Reshape(row, {batch, row.dim(2)}));
    }
    Stepped stepped = step(now, state);
    for (size_t k = 0; k < state.size(); ++k) {
      state[k] = BroadcastTo(graph, stepped.state[k], state[k].shape());
    }
    for (size_t k = 0; k < widths.size(); ++k) {
      const Value row = BroadcastTo(graph, stepped.rows[k], {batch, widths[k]});
      rows[k][t] = Reshape(row, {1, batch, widths[k]});
    }
  }
  Stepped all = {state, {}};
  for (const Values& of_steps : rows) {
    all.rows.push_back(length == 0 ? Value() : Concat(of_steps, 0));
  }
  return all;
}

Stepped Steps::Loop(int64_t chunks, const Values& sequences, const Values& state,
                    const Extents& widths, const Step& step) const {
  ChunkLoop loop = {*this, widths, step, chunks, {}};
  for (const Value& sequence : sequences) {
    loop.sequences.push_back(sequence.is_number()
                                 ? sequence
                                 : Reshape(sequence, {chunks, loop.ChunkSize(sequence.dim(2))}));
  }
  NSMutableArray* initial = [NSMutableArray array];
  for (const Value& value : state) [initial addObject:value.tensor()];
  for (const int64_t width : widths) {
    const Extents rows = {chunks, loop.ChunkSize(width)};
    [initial addObject:BroadcastTo(graph, 0, rows).tensor()];
  }
  const ChunkLoop* body = &loop;  // a block would copy the object
  NSArray<MPSGraphTensor*>* results =
      [graph forLoopWithNumberOfIterations:[graph constantWithScalar:static_cast<double>(chunks)
                                                            dataType:MPSDataTypeInt32]
                      initialBodyArguments:initial
                                      body:^(MPSGraphTensor* iteration,
                                             NSArray<MPSGraphTensor*>* arguments) {
                                        return body->Body(iteration, arguments);
                                      }
                                      name:nil];
  Stepped all;
  for (MPSGraphTensor* result in results) {
    const Value value = Tensor(graph, result);
    if (all.state.size() < state.size()) {
      all.state.push_back(value);
      continue;
    }
    const int64_t width = widths[all.rows.size()];
    all.rows.push_back(Reshape(value, {chunks * kChunk, batch, width}));
  }
  return all;
}

Stepped Steps::Run(const Values& sequences, const Values& state, const Extents& widths,
                   const Step& step) const {
  const int64_t chunks = time / kChunk, looped = chunks * kChunk;
  if (chunks < 2) return Unroll(time, sequences, state, widths, step);
  const auto rest = [&](const Values& before) {
    return Unroll(time - looped, Part(sequences, looped, time - looped), before, widths, step);
  };
  const auto loop = [&](const Values& before) {
    return Loop(chunks, Part(sequences, 0, looped), before, widths, step);
  };
  const Stepped first = reversed ? rest(state) : loop(state);
  const Stepped second = reversed ? loop(first.state) : rest(first.state);
  if (looped == time) return reversed ? second : first;
  Stepped all = {second.state, {}};
  const Stepped &early = reversed ? second : first, &late = reversed ? first : second;
  for (size_t k = 0; k < widths.size(); ++k) {
    all.rows.push_back(Concat({early.rows[k], late.rows[k]}, 0));
  }
  return all;
}

}  // namespace tf_lstm_ops::metal
