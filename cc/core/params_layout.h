// ParamsLayout: the position of each weight of a multi-layer RNN in cuDNN's
// parameter buffer.
//
// A pseudo-layer is one direction of a layer; its index is layer * D +
// direction. The buffer holds the matrices of all pseudo-layers, then the
// biases of all pseudo-layers. The matrices of a pseudo-layer are the input
// matrices, gate by gate, then the recurrent matrices, then the projection. The
// biases are the input biases, gate by gate, then the recurrent biases.
// Source: cuDNN's documentation of cudnnGetRNNWeightParams.
#ifndef TF_LSTM_OPS_CORE_PARAMS_LAYOUT_H_
#define TF_LSTM_OPS_CORE_PARAMS_LAYOUT_H_

#include <cstdint>

#include "core/layer_direction.h"
#include "core/status.h"

namespace tf_lstm_ops {

// The model of a multi-layer RNN.
struct RnnModel {
  CellKind cell = CellKind::kLstm;
  int64_t layers = 1;
  int64_t directions = 1;
  int64_t input_size = 0;   // I
  int64_t cell_size = 0;    // H
  int64_t hidden_size = 0;  // P: less than H with a projection, else H
  bool skip_input = false;  // the first layer has no input matrices

  int gates() const { return GateCount(cell); }
  bool projected() const { return hidden_size < cell_size; }
  int64_t pseudo_layers() const { return layers * directions; }
  int64_t PseudoLayer(int64_t layer, int64_t direction) const {
    return layer * directions + direction;
  }
  int64_t output_size() const { return directions * hidden_size; }
  // The size of a layer's input: I in the first layer, else the size of the
  // outputs of all directions of the layer below.
  int64_t InputSize(int64_t layer) const {
    return layer == 0 ? input_size : output_size();
  }
};

class ParamsLayout {
 public:
  // A row-major matrix, or a vector as one row. `offset` is in elements of the
  // buffer.
  struct Region {
    int64_t offset, rows, columns;
    int64_t size() const { return rows * columns; }
  };

  ParamsLayout() = default;
  // Sets `layout`. Error: InvalidArgument where the buffer's size in bytes does
  // not fit into 64 bits.
  static Status Make(const RnnModel& model, ParamsLayout* layout);

  // Size of the buffer in elements.
  int64_t size() const { return size_; }
  // The number of matrices and of biases of a pseudo-layer, and their regions
  // by cuDNN's linear-layer ID. The IDs count the input matrices of the gates,
  // then the recurrent matrices, then the projection. The IDs of biases count
  // the input biases, then the recurrent biases.
  int matrices() const {
    return 2 * model_.gates() + (model_.projected() ? 1 : 0);
  }
  int biases() const { return 2 * model_.gates(); }
  Region Matrix(int64_t pseudo_layer, int id) const;
  Region Bias(int64_t pseudo_layer, int id) const;

 private:
  // Columns of a layer's input matrices.
  int64_t InputColumns(int64_t layer) const {
    return layer == 0 && model_.skip_input ? 0 : model_.InputSize(layer);
  }

  RnnModel model_;
  int64_t first_ = 0;   // size of the matrices of a pseudo-layer of layer 0
  int64_t others_ = 0;  // and of any other layer
  int64_t size_ = 0;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_PARAMS_LAYOUT_H_
