// MPSGraph's own LSTM, for the layer directions that it can express.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_

#include "backends/metal/layer_graph.h"

namespace tf_lstm_ops::metal {

// Whether MPSGraph's LSTM can compute the layer. This is the case for an LSTM
// with an input x and the gate order ICFO or IFCO, with these exceptions:
// masked steps, a projection, a clip, a forget bias, input dropout, recurrent
// dropout that differs from gate to gate, peepholes that read the new cell
// state, exact activations, and gates that read the same columns of x without
// input weights.
bool IsMpsGraphLstm(const LayerGraph& layer);

// Like BuildForward and BuildBackward (layer_graph.h). The gates among the
// saved activations are MPSGraph's z state, whose contents Apple does not
// document.
LayerGraphOutputs BuildMpsGraphForward(const LayerGraph& layer);
LayerGraphGrads BuildMpsGraphBackward(
    const LayerGraph& layer, const LayerGraphOutputs& outputs,
    const LayerGraphOutputGrads& output_grads);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
