// MultiLayerReserveLayout: the positions of the values that a forward pass of a
// multi-layer RNN saves for its backward pass. All devices use it.
//
//   saved activations       [rows, SavedCount(cell), H] for each pseudo-layer
//   unprojected h           [rows, H] for each pseudo-layer, if saved
//   layer outputs           [rows, D*P] for each of the first output_layers
//   dropout mask            [L-1, rows, D*P], if saved
//
// Each device chooses the rows: V packed rows, or the T*B rows of a sequence.
#ifndef TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_
#define TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "core/layer_direction.h"
#include "core/params_layout.h"

namespace tf_lstm_ops {

// The number of rows of a reserve, and its contents besides the saved
// activations.
struct ReserveContents {
  int64_t rows = 0;
  int64_t output_layers = 0;  // L or L-1
  bool has_unprojected_h = false;
  bool has_dropout_mask = false;
  int64_t alignment = 1;  // of the offset of each part, in elements
};

// Sizes and offsets are in elements. Offsets count from the first saved
// activation. A backend that writes a header puts it before or after these
// values.
class MultiLayerReserveLayout {
 public:
  MultiLayerReserveLayout(const RnnModel& model,
                          const ReserveContents& contents)
      : activations_size_(contents.rows * SavedCount(model.cell) *
                          model.cell_size),
        unprojected_size_(
            contents.has_unprojected_h ? contents.rows * model.cell_size : 0),
        output_size_(contents.rows * model.output_size()),
        mask_size_(contents.has_dropout_mask ? (model.layers - 1) * output_size_
                                             : 0),
        alignment_(contents.alignment),
        pseudo_layers_(model.pseudo_layers()),
        output_layers_(contents.output_layers),
        unprojected_(pseudo_layers_ * Aligned(activations_size_)),
        outputs_(unprojected_ + pseudo_layers_ * Aligned(unprojected_size_)),
        mask_(outputs_ + output_layers_ * Aligned(output_size_)) {}

  int64_t Activations(int64_t pseudo_layer) const {
    return pseudo_layer * Aligned(activations_size_);
  }
  int64_t UnprojectedH(int64_t pseudo_layer) const {
    return unprojected_ + pseudo_layer * Aligned(unprojected_size_);
  }
  int64_t LayerOutput(int64_t layer) const {
    return outputs_ + layer * Aligned(output_size_);
  }
  int64_t DropoutMask() const { return mask_; }

  int64_t activations_size() const { return activations_size_; }
  int64_t unprojected_size() const { return unprojected_size_; }
  int64_t output_size() const { return output_size_; }
  int64_t mask_size() const { return mask_size_; }
  int64_t size() const { return mask_ + Aligned(mask_size_); }

  struct Gap {
    int64_t offset, size;
  };
  // The elements that belong to no part, because each part is aligned.
  std::vector<Gap> Gaps() const {
    std::vector<Gap> gaps;
    const auto add = [&](int64_t offset, int64_t parts, int64_t size) {
      const int64_t stride = Aligned(size);
      if (stride == size) return;
      for (int64_t n = 0; n < parts; ++n) {
        gaps.push_back({offset + n * stride + size, stride - size});
      }
    };
    add(0, pseudo_layers_, activations_size_);
    add(unprojected_, pseudo_layers_, unprojected_size_);
    add(outputs_, output_layers_, output_size_);
    add(mask_, 1, mask_size_);
    return gaps;
  }

 private:
  int64_t Aligned(int64_t size) const {
    return (size + alignment_ - 1) / alignment_ * alignment_;
  }

  int64_t activations_size_, unprojected_size_, output_size_, mask_size_;
  int64_t alignment_, pseudo_layers_, output_layers_;
  int64_t unprojected_, outputs_, mask_;  // offsets
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_RESERVE_LAYOUT_H_
