// ReserveParts: where the parts of a multi-layer RNN's reserve lie.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_RESERVE_PARTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_RESERVE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cuda {

// The reserve begins with a ReserveHeader, which the caller writes. Each
// further part begins at a multiple of 256 bytes, the alignment of TensorFlow's
// GPU allocator. Offsets are in bytes.
class ReserveParts {
 public:
  static constexpr int64_t kAlignment = 256;

  ReserveParts(Algorithm algorithm, int element_size)
      : algorithm_(algorithm), element_size_(element_size) {
    Add(sizeof(ReserveHeader));
  }

  // Adds a part. Returns its offset.
  int64_t Add(int64_t bytes) {
    const int64_t offset = Align(end());
    ends_.push_back(offset + bytes);
    return offset;
  }

  // The size of the reserve in elements. It identifies the algorithm.
  int64_t size() const {
    return TaggedSize(Align(end()) / element_size_, algorithm_);
  }

  // Sets the bytes of `reserve`, in device memory, that belong to no part to
  // zero. Errors: Internal.
  Status ClearGaps(const Device& device, char* reserve) const {
    for (size_t n = 0; n < ends_.size(); ++n) {
      const bool is_last = n + 1 == ends_.size();
      const int64_t gap_end =
          is_last ? size() * element_size_ : Align(ends_[n]);
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device.Zero(reserve + ends_[n], gap_end - ends_[n]));
    }
    return Status();
  }

 private:
  static int64_t Align(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t end() const { return ends_.empty() ? 0 : ends_.back(); }

  const Algorithm algorithm_;
  const int element_size_;
  std::vector<int64_t> ends_;
};

// The address of the dropout mask's key in a reserve.
inline const uint64_t* DropoutKey(const char* reserve) {
  return reinterpret_cast<const uint64_t*>(
      reserve + offsetof(ReserveHeader, dropout_key));
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_RESERVE_PARTS_H_
