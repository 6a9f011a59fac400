// Tests of core/sequence.h and core/packed_sequence.h.
#include "core/sequence.h"

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <sstream>
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
  sequence.in_order_of_computation = true;
  sequence.mask = mask;
  return sequence;
}

// One member of all packed rows.
std::vector<int64_t> List(const PackedSequence& p,
                          int64_t PackedRow::* member) {
  std::vector<int64_t> all;
  for (int64_t e = 0; e < p.size(); ++e) all.push_back(p.At(e).*member);
  return all;
}
std::vector<int64_t> Begins(const PackedSequence& p) {
  std::vector<int64_t> all;
  for (int64_t s = 0; s <= p.steps; ++s) all.push_back(p.Begin(s));
  return all;
}
std::vector<int64_t> Lasts(const PackedSequence& p) {
  std::vector<int64_t> all;
  for (int64_t b = 0; b < p.batch; ++b) all.push_back(p.Last(b));
  return all;
}
using Numbers = std::vector<int64_t>;

TEST(TimeMajorSequence) {
  Sequence sequence = TimeMajor(3, 2);
  const PackedSequence p(sequence);
  CHECK_EQ(p.size(), 6);
  CHECK(Begins(p) == (Numbers{0, 3, 6}));
  CHECK(List(p, &PackedRow::previous) == (Numbers{-1, -1, -1, 0, 1, 2}));
  CHECK(List(p, &PackedRow::output) == (Numbers{0, 1, 2, 3, 4, 5}));
  CHECK(Lasts(p) == (Numbers{3, 4, 5}));
  sequence.reversed = true;
  const PackedSequence r(sequence);
  CHECK(List(r, &PackedRow::input) == (Numbers{3, 4, 5, 0, 1, 2}));
  CHECK(List(r, &PackedRow::output) == List(r, &PackedRow::input));
  CHECK(List(r, &PackedRow::previous) == List(p, &PackedRow::previous));
}

bool Same(const PackedRow& a, const PackedRow& b) {
  return a.index == b.index && a.batch == b.batch && a.input == b.input &&
         a.output == b.output && a.ordinal == b.ordinal &&
         a.previous == b.previous &&
         (a.previous < 0 || a.previous_output == b.previous_output);
}

// What is computed of a full batch is what the lists have of the same batch
// with one more row, which is masked.
void CheckFull(const Sequence& sequence) {
  const PackedSequence full(sequence);
  CHECK(full.is_full());
  CHECK_EQ(full.size(), sequence.batch * sequence.steps);
  // Tensors with room for the lengths or the mask of one more row. Time-major
  // rows lie further apart with it.
  const int64_t batch = sequence.batch + 1;
  Sequence more = sequence;
  more.batch = batch;
  std::vector<int32_t> lengths(batch, static_cast<int32_t>(sequence.steps));
  lengths.back() = 0;
  more.lengths = lengths.data();
  const PackedSequence listed(more);
  CHECK(!listed.is_full());
  CHECK_EQ(listed.size(), full.size());
  CHECK(Begins(listed) == Begins(full));
  const auto row = [&](int64_t r) {
    return sequence.time_major ? r / batch * sequence.batch + r % batch : r;
  };
  for (int64_t e = 0; e < full.size(); ++e) {
    PackedRow want = listed.At(e);
    want.input = row(want.input);
    want.output = row(want.output);
    if (want.previous >= 0) want.previous_output = row(want.previous_output);
    CHECK(Same(full.At(e), want));
    if (e + 1 < full.size()) CHECK(Same(full.Next(want), full.At(e + 1)));
    if (e + 1 < full.size()) {
      CHECK(Same(listed.Next(listed.At(e)), listed.At(e + 1)));
    }
    const PackedRow first = full.At(e - want.batch);
    CHECK(Same(full.Behind(first, want.batch), full.At(e)));
    CHECK(Same(listed.Behind(listed.At(e - want.batch), want.batch),
               listed.At(e)));
    const int64_t stride = full.InputStride(full.At(0), e + 1);
    if (stride != 0) {
      CHECK_EQ(full.At(0).input + e * stride, full.At(e).input);
    }
    CHECK_EQ(listed.InputStride(listed.At(0), e + 1), 0);
    if (want.previous < 0) continue;
    CHECK(Same(full.Before(want), full.At(want.previous)));
    CHECK(Same(listed.Before(listed.At(e)), listed.At(want.previous)));
  }
  for (int64_t b = 0; b < sequence.batch; ++b) {
    CHECK_EQ(full.Last(b), listed.Last(b));
    for (int64_t s = 0; s < full.steps; ++s) {
      CHECK_EQ(full.Find(s, b), listed.Find(s, b));
    }
  }
}

TEST(FullBatchesHaveTheRowsOfTheLists) {
  for (const int64_t batch : {1, 2, 3, 7}) {
    for (const int64_t time : {1, 2, 5}) {
      for (int k = 0; k < 8; ++k) {
        Sequence sequence = TimeMajor(batch, time);
        sequence.time_major = k % 2 == 0;
        sequence.reversed = k / 2 % 2 == 0;
        sequence.in_order_of_computation = k / 4 == 0;
        for (sequence.steps = 1; sequence.steps <= time; ++sequence.steps) {
          CheckFull(sequence);
        }
      }
    }
  }
}

// Quotients are exact where a product of reciprocals is nearest to a wrong one.
TEST(RowsOfLargeBatchesAreExact) {
  for (const int64_t batch : {int64_t{1}, int64_t{3}, int64_t{641},
                              (int64_t{1} << 31) - 1, int64_t{1} << 31}) {
    const int64_t steps = (int64_t{1} << 62) / batch;
    const PackedSequence p(TimeMajor(batch, steps));
    for (const int64_t step : {int64_t{0}, int64_t{1}, steps / 3, steps - 1}) {
      for (const int64_t b : {int64_t{0}, batch - 1}) {
        const PackedRow row = p.At(step * batch + b);
        CHECK_EQ(row.batch, b);
        CHECK_EQ(row.ordinal, step);
      }
    }
  }
}

TEST(OnlyMaskedStepsNeedLists) {
  const int32_t lengths[] = {2, 2, 2};
  Sequence sequence = TimeMajor(3, 2);
  sequence.lengths = lengths;
  CHECK(PackedSequence(sequence).is_full());
  const bool mask[] = {true, true, false, true, true, true, true, true, true};
  CHECK(!PackedSequence(BatchMajor(3, 2, mask)).is_full());
  CHECK(PackedSequence(BatchMajor(3, 2, mask + 3)).is_full());
  CHECK(PackedSequence(BatchMajor(3, 2, nullptr)).is_full());
  // As many rows as no memory holds.
  CHECK_EQ(PackedSequence(TimeMajor(int64_t{1} << 30, int64_t{1} << 30)).size(),
           int64_t{1} << 60);
}

// Row v of a tensor without padding is packed row v in ascending order of time.
TEST(TensorsWithoutPadding) {
  const int32_t uneven[] = {1, 3, 2}, even[] = {3, 3, 3};
  for (const int32_t* lengths : {uneven, even}) {
    for (int k = 0; k < 4; ++k) {
      Sequence sequence = TimeMajor(3, 3);
      sequence.lengths = lengths;
      sequence.time_major = k % 2 == 0;
      const PackedSequence ascending(sequence);
      sequence.reversed = k / 2 == 1;
      const PackedSequence padded(sequence);
      std::vector<int64_t> packed_row(sequence.rows(), -1);
      for (int64_t v = 0; v < ascending.size(); ++v) {
        packed_row[ascending.At(v).input] = v;
      }
      const PackedSequence x = padded.WithoutPadding(packed_row, true, false);
      const PackedSequence y = padded.WithoutPadding(packed_row, false, true);
      for (int64_t v = 0; v < padded.size(); ++v) {
        PackedRow want = padded.At(v);
        want.input = packed_row[want.input];
        CHECK(Same(x.At(v), want));
        want = padded.At(v);
        want.output = packed_row[want.output];
        if (want.previous >= 0) {
          want.previous_output = packed_row[want.previous_output];
        }
        CHECK(Same(y.At(v), want));
      }
    }
  }
}

TEST(NoRows) {
  // As many steps as a tensor without elements may have.
  for (const int64_t time : {int64_t{0}, int64_t{1}, int64_t{1} << 60}) {
    const PackedSequence p(TimeMajor(0, time));
    CHECK_EQ(p.steps, 0);
    CHECK_EQ(p.size(), 0);
    CHECK(Begins(p) == Numbers{0});
  }
}

TEST(FewerStepsThanTime) {
  Sequence sequence = TimeMajor(2, 5);
  sequence.steps = 3;
  const PackedSequence p(sequence);
  CHECK_EQ(sequence.rows(), 6);
  CHECK_EQ(p.steps, 3);
  CHECK(List(p, &PackedRow::input) == (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(MaskedStepsAreLeftOut) {
  const bool mask[] = {true,  false, true,    // a hole
                       false, false, false};  // no valid step
  const PackedSequence p(BatchMajor(2, 3, mask));
  CHECK_EQ(p.size(), 2);
  CHECK(Begins(p) == (Numbers{0, 1, 1, 2}));
  CHECK(List(p, &PackedRow::batch) == (Numbers{0, 0}));
  CHECK(List(p, &PackedRow::input) == (Numbers{0, 2}));
  CHECK(List(p, &PackedRow::previous) == (Numbers{-1, 0}));
  CHECK(List(p, &PackedRow::ordinal) == (Numbers{0, 1}));
  CHECK(Lasts(p) == (Numbers{1, -1}));
}

TEST(LengthsEndEachRow) {
  const int32_t lengths[] = {1, 0, 3};
  Sequence sequence = TimeMajor(3, 4);
  sequence.lengths = lengths;
  const PackedSequence p(sequence);
  CHECK(Begins(p) == (Numbers{0, 2, 3, 4}));
  CHECK(List(p, &PackedRow::batch) == (Numbers{0, 2, 2, 2}));
  CHECK(List(p, &PackedRow::input) == (Numbers{0, 2, 5, 8}));
  CHECK(List(p, &PackedRow::output) == List(p, &PackedRow::input));
  CHECK(Lasts(p) == (Numbers{0, -1, 3}));
  sequence.time_major = false;
  sequence.reversed = true;
  const PackedSequence r(sequence);
  CHECK(List(r, &PackedRow::batch) == (Numbers{0, 2, 2, 2}));
  CHECK(List(r, &PackedRow::input) == (Numbers{0, 10, 9, 8}));
  CHECK(List(r, &PackedRow::previous) == (Numbers{-1, -1, 1, 2}));
}

TEST(ReversedMaskedSequenceWritesInOrder) {
  const bool mask[] = {true, true, false};
  Sequence sequence = BatchMajor(1, 3, mask);
  sequence.reversed = true;
  const PackedSequence p(sequence);
  CHECK(List(p, &PackedRow::input) == (Numbers{1, 0}));
  CHECK(List(p, &PackedRow::output) == (Numbers{1, 2}));
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
      CHECK_EQ(step.output, row(sequence.in_order_of_computation ? s : t));
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
