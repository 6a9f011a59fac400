// The definitions of all ops. In a file of its own, since libraries that only
// add kernels to the ops must not define them again.
#include "dialects/block_cell/signatures.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "dialects/keras/signatures.h"
#include "dialects/mpsgraph/signatures.h"
#include "tf/op.h"

namespace tf_lstm_ops {
namespace {

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&block_cell::LSTMBlockCell>(),
    tf::DefineOp<&block_cell::LSTMBlockCellGrad>(),
    tf::DefineOp<&block_cell::LSTMBlockCellFullGrad>(),
    tf::DefineOp<&block_cell::BlockLSTM>(),
    tf::DefineOp<&block_cell::BlockLSTMGrad>(),
    tf::DefineOp<&block_cell::BlockLSTMV2>(),
    tf::DefineOp<&block_cell::BlockLSTMGradV2>(),
    tf::DefineOp<&block_cell::BlockLSTMFullGrad>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNN>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNV2>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNV3>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNBackprop>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNBackpropV2>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNBackpropV3>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNParamsSize>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNCanonicalToParams>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNCanonicalToParamsV2>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNParamsToCanonical>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNParamsToCanonicalV2>(),
    tf::DefineOp<&cudnn_rnn::CudnnRNNDropoutMask>(),
    tf::DefineOp<&keras::KerasLSTM>(),
    tf::DefineOp<&keras::KerasLSTMGrad>(),
    tf::DefineOp<&keras::KerasGRU>(),
    tf::DefineOp<&keras::KerasGRUGrad>(),
    tf::DefineOp<&mpsgraph::MPSGraphLSTM>(),
    tf::DefineOp<&mpsgraph::MPSGraphLSTMGradients>(),
};

}  // namespace
}  // namespace tf_lstm_ops
