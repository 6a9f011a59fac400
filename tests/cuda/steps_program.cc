// The arithmetic of kernels/steps.h against the lists of core/packed_sequence.h.
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "core/sequence.h"
#include "core/packed_sequence.h"

namespace {

using tf_lstm_ops::PackedSequence;
using tf_lstm_ops::cuda::Steps;

int failures = 0;

void Expect(bool holds, const char* what) {
  if (!holds && failures++ < 10) std::printf("not so: %s\n", what);
}

// Each entry of the schedule is a valid step, and there are no others; all
// steps together write each output once.
void Compare(const Steps& steps, const PackedSequence& schedule) {
  int64_t valid = 0;
  std::set<int64_t> outputs;
  for (int64_t s = 0; s < steps.steps; ++s) {
    for (int64_t b = 0; b < steps.batch; ++b) {
      const Steps::Rows rows = steps.At(b, s);
      valid += rows.valid ? 1 : 0;
      outputs.insert(rows.output);
      int64_t row = 0;
      Expect(steps.Reads(rows.input, &row) == rows.valid, "what is read");
      Expect(row == b, "the row of the batch");
    }
  }
  const auto count = static_cast<size_t>(steps.batch * steps.steps);
  Expect(outputs.size() == count, "every output is written once");
  Expect(valid == schedule.size(), "how many steps are valid");
  for (int64_t s = 0; s < schedule.steps; ++s) {
    for (int64_t e = schedule.begin[s]; e < schedule.begin[s + 1]; ++e) {
      const Steps::Rows rows = steps.At(schedule.batch_row[e], s);
      Expect(rows.valid, "a step with an entry is valid");
      Expect(rows.input == schedule.input_row[e], "the input's row");
      Expect(rows.output == schedule.output_row[e], "the output's row");
    }
  }
}

void CompareAll(int64_t batch, int64_t time, bool reversed,
                std::mt19937* random) {
  Steps steps;
  steps.batch = batch;
  steps.time = time;
  steps.reversed = reversed;
  for (steps.steps = 0; steps.steps <= time; ++steps.steps) {
    Compare(steps, PackedSequence::TimeMajor(steps.steps, batch, reversed));
  }
  steps.steps = time;
  std::vector<int64_t> lengths(batch);
  for (int64_t& length : lengths) {
    length = static_cast<int64_t>((*random)() % (time + 1));
  }
  const std::vector<int32_t> on_device(lengths.begin(), lengths.end());
  for (const bool time_major : {false, true}) {
    Steps with = steps;
    with.time_major = time_major;
    with.lengths = on_device.data();
    Compare(with, PackedSequence::Lengths(batch, time, lengths.data(), time_major,
                                    reversed));
  }
  const std::unique_ptr<bool[]> mask(new bool[batch * time]);  // NOLINT
  for (int64_t n = 0; n < batch * time; ++n) mask[n] = (*random)() % 2 == 0;
  for (const bool* some : {static_cast<const bool*>(nullptr),
                           static_cast<const bool*>(mask.get())}) {
    Steps with = steps;
    with.time_major = false;
    with.outputs_in_order = true;
    with.mask = some;
    Compare(with, PackedSequence::BatchMajor(batch, time, some, reversed));
  }
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
