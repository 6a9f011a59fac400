// Schedule: which rows of a batch take part in which step of a sequence.
//
// Only valid steps have entries, so that work follows the lengths of the
// sequences, whatever the mask looks like: a masked step leaves its row's state
// alone. Entries are ordered by step, then by batch row.
#ifndef TF_LSTM_OPS_CORE_SCHEDULE_H_
#define TF_LSTM_OPS_CORE_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace tf_lstm_ops {

struct Schedule {
  int64_t batch = 0;
  int64_t steps = 0;
  std::vector<int64_t> begin;  // [steps + 1] first entry of each step
  // Of each entry:
  std::vector<int64_t> batch_row;   // its row of the batch
  std::vector<int64_t> input_row;   // its row of x seen as [rows, I]
  std::vector<int64_t> output_row;  // its row of the outputs, [rows, H]
  std::vector<int64_t> previous;    // the same batch row's last entry, or -1
  std::vector<int64_t> ordinal;     // number of that row's earlier entries
  // Of each batch row: its last entry, or -1.
  std::vector<int64_t> last;

  Schedule() = default;

  int64_t size() const { return static_cast<int64_t>(batch_row.size()); }

  // Every row in each of `steps` steps of a time-major [T, B, .] sequence.
  // Reversed, from the last step to the first.
  static Schedule TimeMajor(int64_t steps, int64_t batch,
                            bool reversed = false);

  // Batch-major [B, T, .] sequences. mask [B, T], or null for all valid.
  // Reversed, step s reads input T-1-s and writes output s.
  static Schedule BatchMajor(int64_t batch, int64_t time, const bool* mask,
                             bool reversed);

  // Row b has its steps 0 to lengths[b] - 1, each at most `time`. Reversed, a
  // row begins with its own last step. Rows of input and output are those of
  // the step that is read: t * B + b if time_major, else b * T + t.
  static Schedule Lengths(int64_t batch, int64_t time, const int64_t* lengths,
                          bool time_major, bool reversed);

 private:
  Schedule(int64_t steps, int64_t batch);
  void Add(int64_t row, int64_t input, int64_t output);
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SCHEDULE_H_
