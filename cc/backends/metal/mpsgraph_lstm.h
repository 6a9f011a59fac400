// MPSGraph's own LSTM, for the layers that it can express.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_

#include "backends/metal/rnn.h"

namespace tf_lstm_ops::metal {

// An LSTM over whole sequences whose peepholes, if it has any, all see the
// previous state; without projection, clip and multipliers of single gates.
bool IsMpsGraphLstm(const Layer& layer);

// As Forward and Backward. Steps are what MPSGraph calls the z state, opaque.
LayerOutputs MpsGraphForward(const Layer& layer);
LayerGradients MpsGraphBackward(const Layer& layer, const LayerOutputs& outputs,
                                const LayerUpstream& upstream);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_MPSGRAPH_LSTM_H_
