// Tests of core/sequence.h and core/packed_sequence.h.
#include "core/sequence.h"

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "core/packed_sequence.h"
#include "harness.h"

namespace tf_lstm_ops {
namespace {

Sequence TimeMajor(int64_t batch, int64_t time) {
  Sequence sequence;
  sequence.batch = batch;
  sequence.time = sequence.steps = time;
  return sequence;
}

Sequence BatchMajor(int64_t batch, int64_t time, const bool* mask) {
  Sequence sequence = TimeMajor(batch, time);
  sequence.time_major = false;
  sequence.outputs_in_order = true;
  sequence.mask = mask;
  return sequence;
}

TEST(TimeMajorSequence) {
  Sequence sequence = TimeMajor(3, 2);
  const PackedSequence p(sequence);
  CHECK_EQ(p.size(), 6);
  CHECK(p.begin == (std::vector<int64_t>{0, 3, 6}));
  CHECK(p.previous == (std::vector<int64_t>{-1, -1, -1, 0, 1, 2}));
  CHECK(p.output_row == (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  CHECK(p.last == (std::vector<int64_t>{3, 4, 5}));
  sequence.reversed = true;
  const PackedSequence r(sequence);
  CHECK(r.input_row == (std::vector<int64_t>{3, 4, 5, 0, 1, 2}));
  CHECK(r.output_row == r.input_row);
  CHECK(r.previous == p.previous);
}

TEST(PackKeepsOneStepOfTheThread) {
  PackedSequence own;
  const PackedSequence& first = Pack(TimeMajor(3, 1), &own);
  CHECK(&first != &own);
  CHECK(first.begin == (std::vector<int64_t>{0, 3}));
  CHECK(first.output_row == (std::vector<int64_t>{0, 1, 2}));
  CHECK(&Pack(TimeMajor(3, 1), &own) == &first);
  CHECK_EQ(Pack(TimeMajor(2, 1), &own).size(), 2);
  const bool mask[] = {true, false, true};
  CHECK(&Pack(BatchMajor(3, 1, mask), &own) == &own);
  CHECK_EQ(own.size(), 2);
  CHECK(&Pack(TimeMajor(3, 2), &own) == &own);
  CHECK_EQ(own.size(), 6);
  // Row 1 of the batch is in row 4 of the tensors.
  Sequence first_of_four = BatchMajor(2, 4, nullptr);
  first_of_four.steps = 1;
  CHECK(Pack(first_of_four, &own).input_row == (std::vector<int64_t>{0, 4}));
}

TEST(PackBeginsWithAnyBatch) {
  for (int64_t batch = 0; batch <= 2; ++batch) {
    std::thread caller([batch] {  // whose first call this is
      PackedSequence own;
      const PackedSequence& first = Pack(TimeMajor(batch, 1), &own);
      CHECK_EQ(first.steps, batch > 0 ? 1 : 0);
      CHECK_EQ(first.size(), batch);
    });
    caller.join();
  }
}

TEST(NoRows) {
  // As many steps as a tensor without elements may have.
  for (const int64_t time : {int64_t{0}, int64_t{1}, int64_t{1} << 60}) {
    const PackedSequence p(TimeMajor(0, time));
    CHECK_EQ(p.steps, 0);
    CHECK_EQ(p.size(), 0);
    CHECK(p.begin == (std::vector<int64_t>{0}));
  }
  PackedSequence own;
  CHECK(Pack(TimeMajor(0, 1), &own).begin == (std::vector<int64_t>{0}));
  CHECK(Pack(TimeMajor(2, 1), &own).begin == (std::vector<int64_t>{0, 2}));
  CHECK(Pack(TimeMajor(0, 1), &own).begin == (std::vector<int64_t>{0}));
}

TEST(FewerStepsThanTime) {
  Sequence sequence = TimeMajor(2, 5);
  sequence.steps = 3;
  const PackedSequence p(sequence);
  CHECK_EQ(sequence.rows(), 6);
  CHECK_EQ(p.steps, 3);
  CHECK(p.input_row == (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(MaskedStepsAreLeftOut) {
  const bool mask[] = {true,  false, true,    // a hole
                       false, false, false};  // no valid step
  const PackedSequence p(BatchMajor(2, 3, mask));
  CHECK_EQ(p.size(), 2);
  CHECK(p.begin == (std::vector<int64_t>{0, 1, 1, 2}));
  CHECK(p.batch_row == (std::vector<int64_t>{0, 0}));
  CHECK(p.input_row == (std::vector<int64_t>{0, 2}));
  CHECK(p.previous == (std::vector<int64_t>{-1, 0}));
  CHECK(p.ordinal == (std::vector<int64_t>{0, 1}));
  CHECK(p.last == (std::vector<int64_t>{1, -1}));
}

TEST(LengthsEndEachRow) {
  const int32_t lengths[] = {1, 0, 3};
  Sequence sequence = TimeMajor(3, 4);
  sequence.lengths = lengths;
  const PackedSequence p(sequence);
  CHECK(p.begin == (std::vector<int64_t>{0, 2, 3, 4}));
  CHECK(p.batch_row == (std::vector<int64_t>{0, 2, 2, 2}));
  CHECK(p.input_row == (std::vector<int64_t>{0, 2, 5, 8}));
  CHECK(p.output_row == p.input_row);
  CHECK(p.last == (std::vector<int64_t>{0, -1, 3}));
  sequence.time_major = false;
  sequence.reversed = true;
  const PackedSequence r(sequence);
  CHECK(r.batch_row == (std::vector<int64_t>{0, 2, 2, 2}));
  CHECK(r.input_row == (std::vector<int64_t>{0, 10, 9, 8}));
  CHECK(r.previous == (std::vector<int64_t>{-1, -1, 1, 2}));
}

TEST(ReversedMaskedSequenceWritesInOrder) {
  const bool mask[] = {true, true, false};
  Sequence sequence = BatchMajor(1, 3, mask);
  sequence.reversed = true;
  const PackedSequence p(sequence);
  CHECK(p.input_row == (std::vector<int64_t>{1, 0}));
  CHECK(p.output_row == (std::vector<int64_t>{1, 2}));
}

// The time step that step s of a row reads, written from the definitions.
int64_t TimeOf(int64_t s, int64_t length, bool reversed) {
  return reversed && s < length ? length - 1 - s : s;
}

// Each step reads and writes the rows of the definition; Reads agrees with the
// steps; every output is written once.
void CheckSteps(const Sequence& sequence) {
  std::set<int64_t> outputs;
  int64_t valid = 0;
  for (int64_t s = 0; s < sequence.steps; ++s) {
    for (int64_t b = 0; b < sequence.batch; ++b) {
      const int64_t length =
          sequence.lengths ? sequence.lengths[b] : sequence.steps;
      const int64_t t = TimeOf(s, length, sequence.reversed);
      const auto row = [&](int64_t time) {
        return sequence.time_major ? time * sequence.batch + b
                                   : b * sequence.time + time;
      };
      const Sequence::Step step = sequence.At(b, s);
      CHECK_EQ(step.input, row(t));
      CHECK_EQ(step.output, row(sequence.outputs_in_order ? s : t));
      CHECK_EQ(step.valid, sequence.mask ? sequence.mask[b * sequence.time + t]
                                         : s < length);
      int64_t read = -1;
      CHECK_EQ(sequence.Reads(step.input, &read), step.valid);
      CHECK_EQ(read, b);
      outputs.insert(step.output);
      valid += step.valid ? 1 : 0;
    }
  }
  CHECK_EQ(outputs.size(),
           static_cast<size_t>(sequence.batch * sequence.steps));
  CHECK_EQ(valid, PackedSequence(sequence).size());
}

void CheckAllSequences(int64_t batch, int64_t time, bool reversed,
                       std::mt19937* random) {
  Sequence sequence = TimeMajor(batch, time);
  sequence.reversed = reversed;
  for (sequence.steps = 0; sequence.steps <= time; ++sequence.steps) {
    CheckSteps(sequence);
  }
  sequence.steps = time;
  std::vector<int32_t> lengths(batch);
  for (int32_t& length : lengths) {
    length = static_cast<int32_t>((*random)() % (time + 1));
  }
  for (const bool time_major : {false, true}) {
    Sequence with = sequence;
    with.time_major = time_major;
    with.lengths = lengths.data();
    CheckSteps(with);
  }
  const std::unique_ptr<bool[]> mask(new bool[batch * time]);  // NOLINT
  for (int64_t n = 0; n < batch * time; ++n) mask[n] = (*random)() % 2 == 0;
  for (const bool* some : {static_cast<const bool*>(nullptr),
                           static_cast<const bool*>(mask.get())}) {
    Sequence with = BatchMajor(batch, time, some);
    with.reversed = reversed;
    CheckSteps(with);
  }
}

TEST(StepsReadAndWriteTheRowsOfTheDefinition) {
  std::mt19937 random(7);
  for (int64_t batch = 1; batch <= 4; ++batch) {
    for (int64_t time = 1; time <= 6; ++time) {
      for (const bool reversed : {false, true}) {
        CheckAllSequences(batch, time, reversed, &random);
      }
    }
  }
}

}  // namespace
}  // namespace tf_lstm_ops
