// The CudnnRNN ops: multi-layer RNNs over batches of sequences, with the
// arguments and outputs of the stock ops. Shapes depend on attributes, which
// shape functions of the C API cannot read. The signatures therefore have ranks
// only, and problem.cc checks the sizes.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_SIGNATURES_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_SIGNATURES_H_

#include "core/signature.h"

namespace tf_lstm_ops::cudnn_rnn {

const Signature& CudnnRNN();
const Signature& CudnnRNNV2();
const Signature& CudnnRNNV3();
const Signature& CudnnRNNBackprop();
const Signature& CudnnRNNBackpropV2();
const Signature& CudnnRNNBackpropV3();
const Signature& CudnnRNNParamsSize();
const Signature& CudnnRNNCanonicalToParams();
const Signature& CudnnRNNCanonicalToParamsV2();
const Signature& CudnnRNNParamsToCanonical();
const Signature& CudnnRNNParamsToCanonicalV2();

// Input: reserve_space [.] of a training call. Output: mask [L-1,T,B,D*P], the
// dropout multipliers of the outputs of all layers but the last.
const Signature& CudnnRNNDropoutMask();

// Returns the name of the stock op with the same arguments and outputs. It
// points into `signature`.
const char* StockName(const Signature& signature);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_SIGNATURES_H_
