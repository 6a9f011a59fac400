#include "core/schedule.h"

#include <algorithm>

namespace tf_lstm_ops {

Schedule::Schedule(int64_t steps, int64_t batch)
    : batch(batch), steps(steps), begin(steps + 1, 0), last(batch, -1) {
  for (auto* list :
       {&batch_row, &input_row, &output_row, &previous, &ordinal}) {
    list->reserve(steps * batch);
  }
}

void Schedule::Add(int64_t row, int64_t input, int64_t output) {
  const int64_t before = last[row];
  last[row] = size();
  previous.push_back(before);
  ordinal.push_back(before < 0 ? 0 : ordinal[before] + 1);
  batch_row.push_back(row);
  input_row.push_back(input);
  output_row.push_back(output);
}

Schedule Schedule::TimeMajor(int64_t steps, int64_t batch, bool reversed) {
  Schedule schedule(steps, batch);
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t t = reversed ? steps - 1 - s : s;
    for (int64_t b = 0; b < batch; ++b) {
      schedule.Add(b, t * batch + b, t * batch + b);
    }
    schedule.begin[s + 1] = schedule.size();
  }
  return schedule;
}

Schedule Schedule::BatchMajor(int64_t batch, int64_t time, const bool* mask,
                              bool reversed) {
  Schedule schedule(time, batch);
  for (int64_t s = 0; s < time; ++s) {
    const int64_t t = reversed ? time - 1 - s : s;
    for (int64_t b = 0; b < batch; ++b) {
      if (mask == nullptr || mask[b * time + t]) {
        schedule.Add(b, b * time + t, b * time + s);
      }
    }
    schedule.begin[s + 1] = schedule.size();
  }
  return schedule;
}

Schedule Schedule::Lengths(int64_t batch, int64_t time, const int64_t* lengths,
                           bool time_major, bool reversed) {
  const int64_t longest =
      batch > 0 ? *std::max_element(lengths, lengths + batch) : 0;
  Schedule schedule(longest, batch);
  for (int64_t s = 0; s < longest; ++s) {
    for (int64_t b = 0; b < batch; ++b) {
      if (s >= lengths[b]) continue;
      const int64_t t = reversed ? lengths[b] - 1 - s : s;
      const int64_t row = time_major ? t * batch + b : b * time + t;
      schedule.Add(b, row, row);
    }
    schedule.begin[s + 1] = schedule.size();
  }
  return schedule;
}

}  // namespace tf_lstm_ops
