// Tests of core/sequence.h and core/packed_sequence.h.
#include "core/sequence.h"

#include <algorithm>
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

TEST(PackKeepsSequencesWithoutMaskedSteps) {
  const auto first = Pack(TimeMajor(3, 2));
  CHECK(first->begin == (std::vector<int64_t>{0, 3, 6}));
  CHECK(first->output_row == (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  CHECK(Pack(TimeMajor(3, 2)) == first);
  std::shared_ptr<const PackedSequence> of_thread;
  std::thread other([&] { of_thread = Pack(TimeMajor(3, 2)); });
  other.join();
  CHECK(of_thread == first);
  const int32_t lengths[] = {2, 2, 2};
  Sequence sequence = TimeMajor(3, 2);
  sequence.lengths = lengths;
  CHECK(Pack(sequence) == first);
}

TEST(PackReadsTheMask) {
  const bool mask[] = {true, true, false, true, true, true, true, true, true};
  CHECK_EQ(Pack(BatchMajor(3, 2, mask))->size(), 5);
  const auto full = Pack(BatchMajor(3, 2, mask + 3));
  CHECK_EQ(full->size(), 6);
  CHECK(Pack(BatchMajor(3, 2, nullptr)) == full);
  CHECK_EQ(Pack(BatchMajor(3, 2, mask))->size(), 5);
}

TEST(PackTellsSequencesApart) {
  Sequence base = BatchMajor(2, 4, nullptr);
  base.outputs_in_order = false;
  std::vector<Sequence> all(7, base);
  all[1].batch = 3;
  all[2].time = 5;
  all[3].steps = 1;
  all[4].time_major = true;
  all[5].reversed = true;
  all[6] = all[5];
  all[6].outputs_in_order = true;
  for (const Sequence& first : all) {
    for (const Sequence& second : all) {
      Pack(first);
      const auto packed = Pack(second);  // perhaps of an earlier call
      const PackedSequence own(second);
      CHECK(packed->begin == own.begin);
      CHECK(packed->input_row == own.input_row);
      CHECK(packed->output_row == own.output_row);
    }
  }
}

TEST(PackKeepsFewSequences) {
  const std::weak_ptr<const PackedSequence> first = Pack(TimeMajor(1, 1));
  CHECK(!first.expired());
  for (int64_t batch = 2; batch <= 5; ++batch) Pack(TimeMajor(batch, 1));
  CHECK(first.expired());
  const std::weak_ptr<const PackedSequence> large = Pack(TimeMajor(512, 257));
  CHECK(large.expired());
}

TEST(PackServesThreadsAtOnce) {
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([] {
      for (int64_t n = 0; n < 3000; ++n) {
        const int64_t batch = 1 + n % 6;  // more sizes than are kept
        const auto packed = Pack(TimeMajor(batch, 3));
        CHECK_EQ(packed->size(), 3 * batch);
        CHECK_EQ(packed->output_row.back(), 3 * batch - 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The lists of a full batch, and those of a batch whose last packed row is
// masked, which are built in another way, agree up to that row.
TEST(FullBatchesHaveTheListsOfMaskedOnes) {
  const int64_t batch = 3, time = 4, count = batch * time;
  const std::unique_ptr<bool[]> mask(new bool[count]);  // NOLINT
  for (const bool reversed : {false, true}) {
    std::fill_n(mask.get(), count, true);
    Sequence sequence = BatchMajor(batch, time, mask.get());
    sequence.reversed = reversed;
    const PackedSequence full(sequence);
    CHECK_EQ(full.size(), count);
    CHECK(full.begin == (std::vector<int64_t>{0, 3, 6, 9, 12}));
    CHECK(full.last == (std::vector<int64_t>{9, 10, 11}));
    mask[full.input_row[count - 1]] = false;
    const PackedSequence masked(sequence);
    CHECK_EQ(masked.size(), count - 1);
    const auto check = [&](std::vector<int64_t> PackedSequence::* list) {
      const std::vector<int64_t>& expected = masked.*list;
      CHECK(std::equal(expected.begin(), expected.end(), (full.*list).begin()));
    };
    check(&PackedSequence::batch_row);
    check(&PackedSequence::input_row);
    check(&PackedSequence::output_row);
    check(&PackedSequence::previous);
    check(&PackedSequence::ordinal);
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
  CHECK(Pack(TimeMajor(0, 1))->begin == (std::vector<int64_t>{0}));
  CHECK(Pack(TimeMajor(2, 1))->begin == (std::vector<int64_t>{0, 2}));
  CHECK(Pack(TimeMajor(0, 1))->begin == (std::vector<int64_t>{0}));
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
