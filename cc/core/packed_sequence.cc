#include "core/packed_sequence.h"

#include <algorithm>

namespace tf_lstm_ops {
namespace {

int64_t LongestLength(const Sequence& sequence) {
  if (sequence.batch == 0) return 0;
  if (!sequence.lengths) return sequence.steps;
  const int32_t* end = sequence.lengths + sequence.batch;
  return *std::max_element(sequence.lengths, end);
}

}  // namespace

PackedSequence::PackedSequence(const Sequence& sequence)
    : batch(sequence.batch),
      steps(LongestLength(sequence)),
      begin(steps + 1, 0),
      last(batch, -1) {
  for (auto* list :
       {&batch_row, &input_row, &output_row, &previous, &ordinal}) {
    list->reserve(steps * batch);
  }
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t b = 0; b < batch; ++b) {
      const Sequence::Step step = sequence.At(b, s);
      if (!step.valid) continue;
      const int64_t before = last[b];
      last[b] = size();
      previous.push_back(before);
      ordinal.push_back(before < 0 ? 0 : ordinal[before] + 1);
      batch_row.push_back(b);
      input_row.push_back(step.input);
      output_row.push_back(step.output);
    }
    begin[s + 1] = size();
  }
}

const PackedSequence& Pack(const Sequence& sequence, PackedSequence* own) {
  constexpr int64_t kMaxBatch = 1 << 16;
  const bool in_order = sequence.time_major || sequence.time == 1;
  if (sequence.steps == 1 && sequence.all_valid() && in_order &&
      sequence.batch <= kMaxBatch) {
    static thread_local PackedSequence kept;
    if (kept.batch != sequence.batch) kept = PackedSequence(sequence);
    return kept;
  }
  *own = PackedSequence(sequence);
  return *own;
}

}  // namespace tf_lstm_ops
