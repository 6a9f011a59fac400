// MPSGraph's own LSTM, for the layer directions that it can express.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_

#include "backends/metal/layer_graph.h"

namespace tf_lstm_ops::metal {

// True for an LSTM with x and without masked steps, projection, clipping,
// forget bias, input dropout, recurrent dropout of single gates, peepholes that
// read the new cell state, and exact activations.
bool IsMpsGraphLstm(const LayerGraph& layer);

// As BuildForward and BuildBackward. The gates among the saved activations are
// MPSGraph's z state, which is opaque.
LayerGraphOutputs BuildMpsGraphForward(const LayerGraph& layer);
LayerGraphGrads BuildMpsGraphBackward(
    const LayerGraph& layer, const LayerGraphOutputs& outputs,
    const LayerGraphOutputGrads& output_grads);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
