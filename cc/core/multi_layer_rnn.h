// MultiLayerRnn: a model of several layers in one or two directions over one
// batch of sequences, with all parameters in cuDNN's layout.
//
// Shapes: L layers, D directions, T time steps, B rows of the batch, V valid
// steps, I input size, H cell size, P hidden size. A sequence is [T, B, .], or
// [B, T, .] if batch-major; a state is [L*D, B, .] or [B, L*D, .].
#ifndef TF_LSTM_OPS_CORE_MULTI_LAYER_RNN_H_
#define TF_LSTM_OPS_CORE_MULTI_LAYER_RNN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/dropout.h"
#include "core/layer_direction.h"
#include "core/params_layout.h"
#include "core/shape.h"

namespace tf_lstm_ops {

struct MultiLayerRnn {
  RnnModel model;
  ParamsLayout params;
  bool time_major = true;
  int64_t time = 0;
  int64_t batch = 0;
  std::vector<int32_t> lengths;  // [B], each at most `time`; in host memory
  int64_t valid_steps = 0;       // their sum, V

  int64_t rows() const { return time * batch; }
  bool has_padding() const { return valid_steps < rows(); }
  // The shapes of a sequence and of a state with rows of `width` elements.
  Shape SequenceShape(int64_t width) const;
  Shape StateShape(int64_t width) const;
  // The row of a state tensor that holds row b of a pseudo-layer.
  int64_t StateRow(int64_t pseudo_layer, int64_t b) const {
    return time_major ? pseudo_layer * batch + b
                      : b * model.pseudo_layers() + pseudo_layer;
  }
};

// Tensors of a forward pass, with the shapes above. `params` [params.size()].
// With null `reserve` nothing is saved for a backward pass. Each backend
// defines the layout of `reserve`. The cell states are null unless the model is
// an LSTM.
template <class T>
struct MultiLayerForward {
  const T *input, *input_h, *input_c, *params;
  T *output, *output_h, *output_c;
  T* reserve;
  // Set in place of `reserve` where T is float and the reserve is bfloat16; of
  // the backends only the CPU's reads it.
  BFloat16* bfloat16_reserve = nullptr;
};

// Tensors of a backward pass. The names are those of CudnnRNNBackprop.
template <class T>
struct MultiLayerBackward {
  const T *input, *input_h, *input_c, *params;
  const T *output, *reserve;
  const T *output_backprop, *output_h_backprop, *output_c_backprop;
  T *input_backprop, *input_h_backprop, *input_c_backprop, *params_backprop;
  const BFloat16* bfloat16_reserve = nullptr;  // as above
};

// Whether dropout applies. Dropout acts between layers, so a single layer has
// none.
inline bool HasDropout(const MultiLayerRnn& rnn, float dropout) {
  return dropout > 0 && rnn.model.layers > 1;
}

// Returns the dropout mask of a call, or null without dropout. `dropout` is the
// probability of dropping, `key` comes from DropoutKeys.
std::unique_ptr<DropoutMask> MakeDropoutMask(const MultiLayerRnn& rnn,
                                             float dropout, uint64_t key);

// The order of the gates in the parameter buffer.
constexpr GateOrder CudnnGateOrder(CellKind cell) {
  return IsLstm(cell)             ? kOrderIFCO
         : cell == CellKind::kGru ? kOrderRUN
                                  : kOrderSingle;
}

// Configuration of a layer in either direction.
RnnConfig LayerConfig(const RnnModel& model, int64_t layer);

// The steps of a direction: 0 is forward, 1 is reversed. `lengths` [B] is as in
// Sequence: it may be null and is not owned.
Sequence DirectionSequence(const MultiLayerRnn& rnn, int64_t direction,
                           const int32_t* lengths);

// The weights of a pseudo-layer in the parameter buffer. The matrices of all
// gates are consecutive, and so are the biases, so each region is one row-major
// matrix. A region without rows is absent.
struct LayerRegions {
  ParamsLayout::Region input;           // [G*H, I]
  ParamsLayout::Region recurrent;       // [G*H, P]
  ParamsLayout::Region projection;      // [P, H]
  ParamsLayout::Region input_bias;      // [1, G*H]
  ParamsLayout::Region recurrent_bias;  // [1, G*H]
};
LayerRegions RegionsOf(const MultiLayerRnn& rnn, int64_t layer,
                       int64_t direction);

// A view of the weights of a pseudo-layer in the parameter buffer `params`, or
// of the gradients in a buffer of the same layout. The result points into
// `params`.
template <class T>
RnnWeights<T> LayerWeights(const MultiLayerRnn& rnn, int64_t layer,
                           int64_t direction, T* params) {
  const LayerRegions regions = RegionsOf(rnn, layer, direction);
  const int64_t cell = rnn.model.cell_size;
  const auto matrix = [&](const ParamsLayout::Region& region, int64_t outputs) {
    return ByUnit(params + region.offset, region.columns, outputs);
  };
  RnnWeights<T> weights;
  if (regions.input.rows > 0) weights.input = matrix(regions.input, cell);
  weights.recurrent = matrix(regions.recurrent, cell);
  if (regions.projection.rows > 0) {
    weights.projection = matrix(regions.projection, rnn.model.hidden_size);
  }
  weights.input_bias = params + regions.input_bias.offset;
  weights.recurrent_bias = params + regions.recurrent_bias.offset;
  return weights;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_MULTI_LAYER_RNN_H_
