"""A run of each format: x [B, T, I] to the output [B, T, D*P]."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import raw_ops
from tf_lstm_ops.weights import BlockCell

from .formats import Array, Shape

KERAS_LAYERS = {
    "lstm": keras.layers.LSTM,
    "gru": keras.layers.GRU,
    "rnn_tanh": keras.layers.SimpleRNN,
}


def run_cudnn(
    shape: Shape, params: Any, x: Array, *, module: Any = raw_ops, **options: Any
) -> tf.Tensor:
    states = [x.shape[0], shape.layers * shape.directions]
    return module.CudnnRNNV3(
        input=tf.constant(x, params.dtype),
        input_h=tf.zeros([*states, shape.hidden], params.dtype),
        input_c=tf.zeros([*states, shape.units], params.dtype),
        params=params,
        sequence_lengths=tf.fill([x.shape[0]], x.shape[1]),
        rnn_mode=shape.kind,
        direction="bidirectional" if shape.directions == 2 else "unidirectional",
        num_proj=shape.num_proj,
        time_major=False,
        **options,
    ).output


def run_block(cell: BlockCell, x: Array, *, module: Any = raw_ops, **options: Any) -> tf.Tensor:
    """Through BlockLSTM if there is a forget_bias among the options, else BlockLSTMV2."""
    x = tf.constant(x.swapaxes(0, 1), cell.w.dtype)
    zero = tf.zeros([x.shape[1], cell.b.shape[0] // 4], x.dtype)
    op = module.BlockLSTM if "forget_bias" in options else module.BlockLSTMV2
    results = op(
        seq_len_max=tf.constant(x.shape[0], tf.int64),
        x=x,
        cs_prev=zero,
        h_prev=zero,
        cell_clip=0.0,
        **cell._asdict(),
        **options,
    )
    return tf.transpose(results.h, [1, 0, 2])


def keras_layers(shape: Shape, dtype: str = "float64", **options: Any) -> list[keras.layers.Layer]:
    """The built layers of a multi-layer RNN: stock's, or ours with peepholes."""
    kind = KERAS_LAYERS[shape.kind]
    if shape.peephole:
        kind, options = tf_lstm_ops.keras.LSTM, {"use_peephole": True, **options}

    def layer() -> keras.layers.Layer:
        one = kind(shape.units, return_sequences=True, dtype=dtype, **options)
        return keras.layers.Bidirectional(one, dtype=dtype) if shape.directions == 2 else one

    layers = [layer() for _ in range(shape.layers)]
    width = shape.inputs
    for built in layers:
        built.build((None, None, width))
        width = shape.directions * shape.units
    return layers


def set_weights(layers: list[keras.layers.Layer], arrays: list[Any]) -> None:
    """`arrays` as to_keras returns them."""
    for layer, own in zip(layers, [arrays] if len(layers) == 1 else arrays, strict=True):
        layer.set_weights(own)


def run_keras(layers: list[keras.layers.Layer], x: Array) -> Array:
    for layer in layers:
        x = layer(x)
    return np.array(x)
