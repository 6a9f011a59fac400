"""The ops' mathematics in plain TensorFlow ops, differentiable any number of times.

The fused kernels give values and first derivatives; second and higher ones go through here. Each
function takes what the op it stands for takes. 16-bit types are computed in float32, as in the
kernels.
"""

from tf_lstm_ops.composite.block_cell import (
    block_lstm_full_grad,
    block_lstm_grad,
    lstm_block_cell_full_grad,
    lstm_block_cell_grad,
)
from tf_lstm_ops.composite.cudnn_rnn import cudnn_rnn, cudnn_rnn_backprop
from tf_lstm_ops.composite.keras import (
    keras_gru,
    keras_gru_grad,
    keras_lstm,
    keras_lstm_grad,
    straight_through_clip,
)

__all__ = [
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
    "straight_through_clip",
]
