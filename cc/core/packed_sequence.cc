#include "core/packed_sequence.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

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

void PackedSequence::Assign(const Sequence& sequence) {
  batch = sequence.batch;
  steps = LongestLength(sequence);
  if (!IsFull(sequence)) {
    if (lists_.use_count() != 1) lists_ = std::make_shared<Lists>();
    ListValidSteps(sequence, steps, lists_.get());
    UseLists();
    return;
  }
  rows_ = nullptr;
  begin_ = last_ = nullptr;
  reciprocal_ = batch > 0 ? UINT64_MAX / static_cast<uint64_t>(batch) : 0;
  input_ = AffineOf(sequence.time_major, sequence.time, sequence.reversed);
  output_ = AffineOf(sequence.time_major, sequence.time,
                     sequence.reversed && !sequence.in_order_of_computation);
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
  packed.lists_ = std::make_shared<Lists>(*lists_);
  for (int64_t e = 0; e < size(); ++e) {
    PackedRow& row = packed.lists_->rows[e];
    if (input) row.input = packed_row[row.input];
    if (!output) continue;
    row.output = packed_row[row.output];
    if (row.previous >= 0) {
      row.previous_output = packed_row[row.previous_output];
    }
  }
  packed.UseLists();
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

void PackedSequence::ListValidSteps(const Sequence& sequence, int64_t steps,
                                    Lists* lists) {
  std::vector<int64_t>& begin = lists->begin;
  std::vector<int64_t>& last = lists->last;
  std::vector<PackedRow>& rows = lists->rows;
  begin.clear();
  begin.reserve(steps + 1);
  last.assign(sequence.batch, -1);
  rows.clear();
  rows.reserve(steps * sequence.batch + 1);
  for (int64_t s = 0; s < steps; ++s) {
    begin.push_back(static_cast<int64_t>(rows.size()));
    for (int64_t b = 0; b < sequence.batch; ++b) {
      const Sequence::Step step = sequence.At(b, s);
      if (!step.valid) continue;
      const auto e = static_cast<int64_t>(rows.size());
      const int64_t previous = last[b];
      PackedRow row = {e, b, step.input, step.output, 0, previous, -1};
      if (previous >= 0) {
        row.ordinal = rows[previous].ordinal + 1;
        row.previous_output = rows[previous].output;
      }
      last[b] = e;
      rows.push_back(row);
    }
  }
  begin.push_back(static_cast<int64_t>(rows.size()));
  rows.push_back({});  // Next of the last row
}

void PackedSequence::UseLists() {
  rows_ = lists_->rows.data();
  begin_ = lists_->begin.data();
  last_ = lists_->last.data();
}

}  // namespace tf_lstm_ops
