#include "core/packed_sequence.h"

#include <algorithm>
#include <array>
#include <atomic>
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

// Whether two sequences without masked steps have the same lists.
bool SameLists(const Sequence& a, const Sequence& b) {
  return a.batch == b.batch && a.time == b.time && a.steps == b.steps &&
         a.time_major == b.time_major && a.reversed == b.reversed &&
         a.outputs_in_order == b.outputs_in_order;
}

// The packed sequences of the last calls without masked steps. A call that
// finds the list in use, by another thread or since a fork, does without it.
class RecentSequences {
 public:
  using Packed = std::shared_ptr<const PackedSequence>;

  // Returns null where there is none.
  Packed Find(const Sequence& sequence) {
    Packed found;
    if (busy_.exchange(true)) return found;
    for (const Entry& entry : entries_) {
      if (entry.packed && SameLists(entry.sequence, sequence)) {
        found = entry.packed;
        break;
      }
    }
    busy_.store(false);
    return found;
  }

  // Replaces the oldest entry.
  void Add(const Sequence& sequence, Packed packed) {
    if (packed->size() > kMaxRows || busy_.exchange(true)) return;
    Entry* entry = &entries_[next_];
    next_ = (next_ + 1) % entries_.size();
    entry->sequence = sequence;
    entry->packed.swap(packed);  // the old one is freed after the list is left
    busy_.store(false);
  }

 private:
  // Both directions of two sizes, such as those of training and of validation.
  static constexpr size_t kCount = 4;
  // 5 MiB of lists in an entry.
  static constexpr int64_t kMaxRows = int64_t{1} << 17;

  struct Entry {
    Sequence sequence;  // without lengths and mask
    Packed packed;
  };
  std::array<Entry, kCount> entries_;
  size_t next_ = 0;
  std::atomic<bool> busy_{false};
};

}  // namespace

PackedSequence::PackedSequence(const Sequence& sequence)
    : batch(sequence.batch),
      steps(LongestLength(sequence)),
      begin(steps + 1, 0),
      last(batch, -1) {
  if (IsFull(sequence)) {
    AddAllSteps(sequence);
  } else {
    AddValidSteps(sequence);
  }
}

void PackedSequence::AddAllSteps(const Sequence& sequence) {
  for (auto* list :
       {&batch_row, &input_row, &output_row, &previous, &ordinal}) {
    list->resize(steps * batch);
  }
  // Row b of time step t is row b * of_row + t * of_step of the tensors.
  const int64_t of_row = sequence.Row(1, 0), of_step = sequence.Row(0, 1);
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t first = s * batch;
    const int64_t time = sequence.reversed ? steps - 1 - s : s;
    const int64_t input = time * of_step;
    const int64_t output = sequence.outputs_in_order ? s * of_step : input;
    for (int64_t b = 0; b < batch; ++b) {
      batch_row[first + b] = b;
      input_row[first + b] = input + b * of_row;
      output_row[first + b] = output + b * of_row;
      previous[first + b] = s == 0 ? -1 : first - batch + b;
      ordinal[first + b] = s;
    }
    begin[s + 1] = first + batch;
  }
  for (int64_t b = 0; steps > 0 && b < batch; ++b) {
    last[b] = (steps - 1) * batch + b;
  }
}

void PackedSequence::AddValidSteps(const Sequence& sequence) {
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

std::shared_ptr<const PackedSequence> Pack(const Sequence& sequence) {
  if (!IsFull(sequence)) {
    return std::make_shared<const PackedSequence>(sequence);
  }
  // Never destroyed, because a thread may still compute at exit.
  static RecentSequences& recent = *new RecentSequences;
  Sequence full = sequence;
  full.lengths = nullptr;
  full.mask = nullptr;
  std::shared_ptr<const PackedSequence> packed = recent.Find(full);
  if (!packed) {
    packed = std::make_shared<const PackedSequence>(full);
    recent.Add(full, packed);
  }
  return packed;
}

}  // namespace tf_lstm_ops
