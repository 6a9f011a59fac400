// PackedSequence: the valid steps of a Sequence as lists, without padding.
//
// A packed row is one valid step of one row of the batch. Packed rows are
// ordered by step, then by row of the batch. A masked step does not change the
// state of its row, so a pass computes the packed rows only.
#ifndef TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_
#define TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/sequence.h"

namespace tf_lstm_ops {

struct PackedSequence {
  int64_t batch = 0;
  int64_t steps = 0;
  std::vector<int64_t> begin = {0};  // [steps + 1], a step's first packed row
  // Of each packed row:
  std::vector<int64_t> batch_row;   // its row of the batch
  std::vector<int64_t> input_row;   // its row of x as [rows, I]
  std::vector<int64_t> output_row;  // its row of the outputs as [rows, P],
                                    // where P is the size of an output
  // The preceding packed row of the same row of the batch, or -1.
  std::vector<int64_t> previous;
  // The number of preceding packed rows of the same row of the batch.
  std::vector<int64_t> ordinal;
  // Of each row of the batch: its last packed row, or -1.
  std::vector<int64_t> last;

  PackedSequence() = default;
  // The lengths and the mask of `sequence` must lie in host memory. Only the
  // constructor reads them. Steps beyond the longest length are left out; a
  // batch of no rows has no steps.
  explicit PackedSequence(const Sequence& sequence);

  // V, the number of valid steps.
  int64_t size() const { return static_cast<int64_t>(batch_row.size()); }

 private:
  void AddAllSteps(const Sequence& sequence);
  void AddValidSteps(const Sequence& sequence);
};

// Returns the packed sequence of `sequence`. Where all steps are valid it may
// be that of an earlier call: those of the last few calls are kept, since calls
// of the same sizes have the same one. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<const PackedSequence> Pack(const Sequence& sequence);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_PACKED_SEQUENCE_H_
