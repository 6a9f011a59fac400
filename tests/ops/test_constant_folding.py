"""TensorFlow runs ops with constant inputs before a session exists: it folds constants while it
infers shapes, and while it optimises a graph. Such a call of a kernel has no configuration.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import raw_ops

T, B, I, H = 3, 2, 4, 5  # noqa: E741
RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


WEIGHTS = {
    **{"w": draw(I + H, 4 * H), "wci": draw(H), "wcf": draw(H), "wco": draw(H), "b": draw(4 * H)},
    **{"cs_prev": draw(B, H), "h_prev": draw(B, H)},
}
CUDNN = {
    "input_h": draw(1, B, H),
    "input_c": draw(1, B, H),
    "params": draw(4 * H * (I + H + 2)),
}
MPSGRAPH = {"recurrent_weight": draw(4 * H, H), "input_weight": draw(4 * H, I)}


def of_layer(cls: type[keras.Layer]) -> Callable[[tf.Tensor], Any]:
    """A layer whose weights are constants."""
    layer = cls(H, return_sequences=True)
    layer.build((B, T, I))
    arrays = layer.get_weights()

    def call(x: tf.Tensor) -> Any:
        weights = [tf.constant(array) for array in arrays]
        pairs = zip(layer.weights, weights, strict=True)
        with keras.StatelessScope(state_mapping=pairs):
            return layer(x)

    return call


# By name: the shape of x, and the op with constants for its other arguments.
CALLS: dict[str, tuple[tuple[int, ...], Callable[[tf.Tensor], Any]]] = {
    "LSTMBlockCell": ((B, I), lambda x: raw_ops.LSTMBlockCell(x=x, **WEIGHTS).h),
    "BlockLSTM": ((T, B, I), lambda x: raw_ops.BlockLSTM(x=x, seq_len_max=T, **WEIGHTS).h),
    "BlockLSTMV2": ((T, B, I), lambda x: raw_ops.BlockLSTMV2(x=x, seq_len_max=T, **WEIGHTS).h),
    "CudnnRNNV3": (
        (T, B, I),
        lambda x: raw_ops.CudnnRNNV3(input=x, sequence_lengths=[T, 1], **CUDNN).output,
    ),
    "MPSGraphLSTM": (
        (T, B, I),
        lambda x: raw_ops.MPSGraphLSTM(source=x, **MPSGRAPH, training=True)[0],
    ),
    "keras.LSTM": ((B, T, I), of_layer(tf_lstm_ops.keras.LSTM)),
    "keras.GRU": ((B, T, I), of_layer(tf_lstm_ops.keras.GRU)),
}


def output_and_gradient(call: Callable[[tf.Tensor], Any], x: tf.Tensor) -> tuple[Any, Any]:
    output = call(x)
    return output, tf.gradients(output, x)[0]


@pytest.mark.parametrize("name", CALLS)
def test_while_a_graph_is_optimised(name):
    shape, call = CALLS[name]
    x = draw(*shape)
    folded = tf.function(lambda: output_and_gradient(call, tf.constant(x)))()
    wanted = tf.function(lambda x: output_and_gradient(call, x))(tf.constant(x))
    for a, b in zip(folded, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


# TensorFlow does not fold stateful ops.
@pytest.mark.parametrize("name", [name for name in CALLS if name != "CudnnRNNV3"])
def test_while_shapes_are_inferred(name):
    """The value of an op becomes a static shape."""
    shape, call = CALLS[name]
    with tf.Graph().as_default():
        for value in output_and_gradient(call, tf.constant(draw(*shape))):
            size = tf.cast(tf.round(tf.math.tanh(1e6 * tf.reduce_sum(value**2))), tf.int32)
            assert tf.zeros([1 + size, 3]).shape == [2, 3]
