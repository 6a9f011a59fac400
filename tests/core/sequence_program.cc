// core/sequence.h, whose arithmetic device code evaluates, against the lists of
// core/packed_sequence.h and against a plain enumeration.
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "core/packed_sequence.h"
#include "core/sequence.h"

namespace {

using tf_lstm_ops::PackedSequence;
using tf_lstm_ops::Sequence;

int failures = 0;

void Expect(bool holds, const char* what) {
  if (!holds && failures++ < 10) std::printf("failed: %s\n", what);
}

// The row of the time step that step s reads, by its definition.
int64_t ExpectedTime(const Sequence& sequence, int64_t b, int64_t s) {
  const int64_t length =
      sequence.lengths ? sequence.lengths[b] : sequence.steps;
  return sequence.reversed && s < length ? length - 1 - s : s;
}

// Every packed row is a valid step, there are no other valid steps, and all
// steps together write each output row once.
void Compare(const Sequence& sequence) {
  const PackedSequence packed(sequence);
  int64_t valid = 0;
  std::set<int64_t> outputs;
  for (int64_t s = 0; s < sequence.steps; ++s) {
    for (int64_t b = 0; b < sequence.batch; ++b) {
      const Sequence::Step step = sequence.At(b, s);
      const int64_t t = ExpectedTime(sequence, b, s);
      valid += step.valid ? 1 : 0;
      outputs.insert(step.output);
      Expect(step.input == sequence.Row(b, t), "the row that a step reads");
      Expect(step.output ==
                 sequence.Row(b, sequence.in_order_of_computation ? s : t),
             "the row that a step writes");
      int64_t row = 0;
      Expect(sequence.Reads(step.input, &row) == step.valid,
             "whether a row is read");
      Expect(row == b, "the row of the batch");
    }
  }
  const auto count = static_cast<size_t>(sequence.batch * sequence.steps);
  Expect(outputs.size() == count, "every output row is written once");
  Expect(valid == packed.size(), "the number of valid steps");
  for (int64_t s = 0; s < packed.steps; ++s) {
    for (int64_t v = packed.Begin(s); v < packed.Begin(s + 1); ++v) {
      const tf_lstm_ops::PackedRow row = packed.At(v);
      const Sequence::Step step = sequence.At(row.batch, s);
      Expect(step.valid, "a packed row is a valid step");
      Expect(step.input == row.input, "the input row");
      Expect(step.output == row.output, "the output row");
    }
  }
}

void CompareAll(int64_t batch, int64_t time, bool reversed,
                std::mt19937* random) {
  Sequence sequence;
  sequence.batch = batch;
  sequence.time = time;
  sequence.reversed = reversed;
  for (sequence.steps = 0; sequence.steps <= time; ++sequence.steps) {
    Compare(sequence);
  }
  sequence.steps = time;
  std::vector<int32_t> lengths(batch);
  for (int32_t& length : lengths) {
    length = static_cast<int32_t>((*random)() % (time + 1));
  }
  for (const bool time_major : {false, true}) {
    Sequence with_lengths = sequence;
    with_lengths.time_major = time_major;
    with_lengths.lengths = lengths.data();
    Compare(with_lengths);
  }
  const std::unique_ptr<bool[]> mask(new bool[batch * time]);  // NOLINT
  for (int64_t n = 0; n < batch * time; ++n) mask[n] = (*random)() % 2 == 0;
  sequence.time_major = false;
  sequence.in_order_of_computation = true;
  Compare(sequence);
  sequence.mask = mask.get();
  Compare(sequence);
}

}  // namespace

int main() {
  std::mt19937 random(7);
  for (int64_t batch = 1; batch <= 4; ++batch) {
    for (int64_t time = 1; time <= 6; ++time) {
      for (const bool reversed : {false, true}) {
        CompareAll(batch, time, reversed, &random);
      }
    }
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
