// A multi-layer RNN as a graph: its layers one after the other, the directions
// of a layer beside each other. This is the graph form of MultiLayerForward and
// MultiLayerBackward in core/, with the same names and shapes.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_MULTI_LAYER_GRAPH_H_
#define TF_LSTM_OPS_BACKENDS_METAL_MULTI_LAYER_GRAPH_H_

#include "backends/metal/value.h"
#include "core/multi_layer_rnn.h"
#include "core/reserve_layout.h"

namespace tf_lstm_ops::metal {

// The layout of a reserve: rows = T*B, the outputs of all layers, and the
// dropout mask if `dropout` is positive. Padding takes space, so the graph does
// not depend on the lengths.
MultiLayerReserveLayout MakeReserveLayout(const MultiLayerRnn& rnn,
                                          float dropout);

// What both passes read. The cell states are 0 unless the model is an LSTM.
struct MultiLayerGraph {
  MPSGraph* graph = nil;     // not owned
  const MultiLayerRnn& rnn;  // its lengths are not read: see `valid`
  float dropout = 0;
  Value input = 0, input_h = 0, input_c = 0, params = 0;
  Value valid = 1;  // [T, B, 1], positive where a step is valid for a row, or 1
};

struct MultiLayerGraphOutputs {
  Value output, output_h, output_c;
  Value reserve;  // in the layout of MakeReserveLayout
};

struct MultiLayerGraphOutputGrads {
  Value output, output_h, output_c;
};

struct MultiLayerGraphGrads {
  Value input, input_h, input_c, params;
};

// Adds the forward pass to the graph. `dropout_mask` is [L-1, T, B, D*P],
// positive where the output of a layer but the last is not dropped, or 1.
MultiLayerGraphOutputs BuildForward(const MultiLayerGraph& rnn,
                                    const Value& dropout_mask,
                                    bool saves_reserve);

// Adds the backward pass to the graph. `reserve` is that of BuildForward. It
// may have more elements at the end.
MultiLayerGraphGrads BuildBackward(
    const MultiLayerGraph& rnn, const Value& reserve,
    const MultiLayerGraphOutputGrads& output_grads);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_MULTI_LAYER_GRAPH_H_
