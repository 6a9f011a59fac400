#include "core/packed_sequence.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tf_lstm_ops {
namespace {

int64_t LongestLength(const Sequence& sequence) {
  if (sequence.batch == 0) return 0;
  if (!sequence.lengths) return sequence.steps;
  const int32_t* end = sequence.lengths + sequence.batch;
  return *std::max_element(sequence.lengths, end);
}

// Whether every step of every row is valid. False where a mask has more time
// steps than are computed and only those beyond them are masked.
bool IsFull(const Sequence& sequence) {
  const int64_t batch = sequence.batch;
  if (sequence.mask) {
    const auto size = static_cast<size_t>(batch * sequence.time);
    return size == 0 || std::memchr(sequence.mask, 0, size) == nullptr;
  }
  return !sequence.lengths ||
         std::all_of(sequence.lengths, sequence.lengths + batch,
                     [&](int64_t length) { return length == sequence.steps; });
}

}  // namespace

PackedSequence::PackedSequence(const Sequence& sequence)
    : batch(sequence.batch), steps(LongestLength(sequence)) {
  if (!IsFull(sequence)) {
    Set(ValidSteps(sequence, steps));
    return;
  }
  if (batch > 0) reciprocal_ = UINT64_MAX / static_cast<uint64_t>(batch);
  input_ = AffineOf(sequence.time_major, sequence.time, sequence.reversed);
  output_ = AffineOf(sequence.time_major, sequence.time,
                     sequence.reversed && !sequence.outputs_in_order);
}

int64_t PackedSequence::Find(int64_t step, int64_t row) const {
  if (is_full()) return Begin(step) + row;
  const auto before = [](const PackedRow& at, int64_t b) {
    return at.batch < b;
  };
  return std::lower_bound(rows_ + begin_[step], rows_ + begin_[step + 1], row,
                          before) -
         rows_;
}

PackedSequence PackedSequence::WithoutPadding(
    const std::vector<int64_t>& packed_row, bool input, bool output) const {
  PackedSequence packed = *this;
  if (is_full()) {
    if (input) packed.input_ = AffineOf(true, 0, input_.of_step < 0);
    if (output) packed.output_ = AffineOf(true, 0, output_.of_step < 0);
    return packed;
  }
  Lists lists = *lists_;
  for (int64_t e = 0; e < size(); ++e) {
    PackedRow& row = lists.rows[e];
    if (input) row.input = packed_row[row.input];
    if (!output) continue;
    row.output = packed_row[row.output];
    if (row.previous >= 0) {
      row.previous_output = packed_row[row.previous_output];
    }
  }
  packed.Set(std::move(lists));
  return packed;
}

// The rows of the time steps in ascending or descending order, of tensors with
// `time` time steps.
PackedSequence::Affine PackedSequence::AffineOf(bool time_major, int64_t time,
                                                bool reversed) const {
  const int64_t of_time = time_major ? batch : 1;
  const int64_t of_row = time_major ? 1 : time;
  if (!reversed) return {0, of_time, of_row};
  return {(steps - 1) * of_time, -of_time, of_row};
}

PackedSequence::Lists PackedSequence::ValidSteps(const Sequence& sequence,
                                                 int64_t steps) {
  Lists lists;
  lists.begin.reserve(steps + 1);
  lists.last.assign(sequence.batch, -1);
  lists.rows.reserve(steps * sequence.batch + 1);
  for (int64_t s = 0; s < steps; ++s) {
    lists.begin.push_back(static_cast<int64_t>(lists.rows.size()));
    for (int64_t b = 0; b < sequence.batch; ++b) {
      const Sequence::Step step = sequence.At(b, s);
      if (!step.valid) continue;
      const auto e = static_cast<int64_t>(lists.rows.size());
      const int64_t previous = lists.last[b];
      PackedRow row = {e, b, step.input, step.output, 0, previous, -1};
      if (previous >= 0) {
        row.ordinal = lists.rows[previous].ordinal + 1;
        row.previous_output = lists.rows[previous].output;
      }
      lists.last[b] = e;
      lists.rows.push_back(row);
    }
  }
  lists.begin.push_back(static_cast<int64_t>(lists.rows.size()));
  lists.rows.push_back({});  // Next of the last row
  return lists;
}

void PackedSequence::Set(Lists lists) {
  lists_ = std::make_shared<const Lists>(std::move(lists));
  rows_ = lists_->rows.data();
  begin_ = lists_->begin.data();
  last_ = lists_->last.data();
}

}  // namespace tf_lstm_ops
