// A layer whose output is projected, by one whose output is not.
//
// With h = r W, r the cell's own output, the recurrent product h R is r (W R).
// W R is found once for a call: then the steps are those of a layer without
// projection, and all that is projected is a product over all steps. A step is
// as few launches, or waits, as without; it has H*4H weights in place of P*5H.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_PROJECTION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_PROJECTION_H_

#include "backends/cuda/rnn.h"

namespace tf_lstm_ops::cuda {

template <class T>
Status ForwardProjected(const Device& device, const RnnForward<T>& args);
template <class T>
Status BackwardProjected(const Device& device, const RnnBackward<T>& args);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_PROJECTION_H_
