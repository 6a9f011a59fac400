"""The ops in the style of ``tf.raw_ops``: keyword arguments only, the stock names and defaults.

Every op takes half, bfloat16, float and double; 16-bit types are computed in float. Results are new
tensors; no function changes its arguments.

Every function raises ``tf.errors.InvalidArgumentError`` for an argument of wrong rank, size or
type. The message names the argument, what was expected and what was given. A wrong rank or size
that TensorFlow finds while it traces a ``tf.function`` is a ValueError with the same text.
"""

from tf_lstm_ops import _registration

_registration.ops()  # before what it imports is imported here
# ruff: noqa: E402

from tf_lstm_ops.raw_ops.block_cell import (
    BlockLSTM,
    BlockLSTMGrad,
    BlockLSTMGradV2,
    BlockLSTMV2,
    LSTMBlockCell,
    LSTMBlockCellGrad,
)
from tf_lstm_ops.raw_ops.cudnn_params import (
    CudnnRNNCanonicalToParams,
    CudnnRNNCanonicalToParamsV2,
    CudnnRNNParamsSize,
    CudnnRNNParamsToCanonical,
    CudnnRNNParamsToCanonicalV2,
)
from tf_lstm_ops.raw_ops.cudnn_rnn import (
    CudnnRNN,
    CudnnRNNBackprop,
    CudnnRNNBackpropV2,
    CudnnRNNBackpropV3,
    CudnnRNNV2,
    CudnnRNNV3,
)
from tf_lstm_ops.raw_ops.mpsgraph import MPSGraphLSTM, MPSGraphLSTMGradients

__all__ = [
    "BlockLSTM",
    "BlockLSTMGrad",
    "BlockLSTMGradV2",
    "BlockLSTMV2",
    "CudnnRNN",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNCanonicalToParams",
    "CudnnRNNCanonicalToParamsV2",
    "CudnnRNNParamsSize",
    "CudnnRNNParamsToCanonical",
    "CudnnRNNParamsToCanonicalV2",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "LSTMBlockCell",
    "LSTMBlockCellGrad",
    "MPSGraphLSTM",
    "MPSGraphLSTMGradients",
]
