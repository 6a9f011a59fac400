// MultiLayerReserveLayout: the positions of the values that a forward pass of a
// multi-layer RNN saves for its backward pass.
//
//   saved activations       [rows, SavedCount(cell), H] for each pseudo-layer
//   layer outputs           [rows, D*P] for each of the first output_layers
//
// The rows are the V packed rows of the sequences.
#ifndef TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_
#define TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_

#include <cstdint>

#include "core/layer_direction.h"
#include "core/params_layout.h"

namespace tf_lstm_ops {

// Sizes and offsets are in elements. Offsets count from the first saved
// activation.
class MultiLayerReserveLayout {
 public:
  MultiLayerReserveLayout(const RnnModel& model, int64_t rows,
                          int64_t output_layers)
      : activations_size_(rows * SavedCount(model.cell) * model.cell_size),
        output_size_(rows * model.output_size()),
        outputs_(model.pseudo_layers() * activations_size_),
        size_(outputs_ + output_layers * output_size_) {}

  int64_t Activations(int64_t pseudo_layer) const {
    return pseudo_layer * activations_size_;
  }
  int64_t LayerOutput(int64_t layer) const {
    return outputs_ + layer * output_size_;
  }
  int64_t size() const { return size_; }

 private:
  int64_t activations_size_, output_size_;
  int64_t outputs_;  // offset
  int64_t size_;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_
