"""The ops' mathematics in plain TensorFlow ops, differentiable any number of times.

The fused kernels give values and first derivatives; second and higher ones go through here, and all
of them where only plain ops may run (`plain_ops_required`): in XLA and in portable exports. Each
function takes what the op it stands for takes; `COMPOSITES` has those with just the op's arguments
and results. 16-bit types are computed in float32, as in the kernels.
"""

from tf_lstm_ops.composite.block_cell import (
    block_lstm_full_grad,
    block_lstm_grad,
    lstm_block_cell_full_grad,
    lstm_block_cell_grad,
)
from tf_lstm_ops.composite.common import straight_through_clip
from tf_lstm_ops.composite.context import plain_ops, plain_ops_required
from tf_lstm_ops.composite.cudnn_rnn import cudnn_rnn, cudnn_rnn_backprop
from tf_lstm_ops.composite.keras import (
    keras_gru,
    keras_gru_grad,
    keras_lstm,
    keras_lstm_grad,
)
from tf_lstm_ops.composite.mpsgraph import mpsgraph_lstm, mpsgraph_lstm_gradients
from tf_lstm_ops.composite.table import COMPOSITES

__all__ = [
    "COMPOSITES",
    "block_lstm_full_grad",
    "block_lstm_grad",
    "cudnn_rnn",
    "cudnn_rnn_backprop",
    "keras_gru",
    "keras_gru_grad",
    "keras_lstm",
    "keras_lstm_grad",
    "lstm_block_cell_full_grad",
    "lstm_block_cell_grad",
    "mpsgraph_lstm",
    "mpsgraph_lstm_gradients",
    "plain_ops",
    "plain_ops_required",
    "straight_through_clip",
]
