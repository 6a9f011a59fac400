"""Random weights, and a run of each format: x [B, T, I] to the output [B, T, D*P]."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import raw_ops
from tf_lstm_ops.weights import BlockCell, CellWeights, GRUWeights, LSTMWeights, RNNWeights

Array = np.ndarray
Weights = LSTMWeights | GRUWeights | RNNWeights
KINDS = {"lstm": LSTMWeights, "gru": GRUWeights, "rnn_tanh": RNNWeights}  # by cuDNN's rnn_mode
KERAS_LAYERS = {
    "lstm": keras.layers.LSTM,
    "gru": keras.layers.GRU,
    "rnn_tanh": keras.layers.SimpleRNN,
}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}

INPUTS, UNITS = 3, 4
# Two correct evaluations differ by some hundred roundings of 1e-16 of outputs within [-1, 1], which
# propagate through three layers.
ROUNDING = 1e-13
# In float32, for stock's block cell, which has no wider type: some dozen roundings of 6e-8.
ROUNDING_FLOAT32 = 2e-6


class Shape(NamedTuple):
    """The sizes and kinds of weights."""

    kind: str = "lstm"
    layers: int = 1
    directions: int = 1
    num_proj: int = 0
    peephole: bool = False
    inputs: int = INPUTS
    units: int = UNITS

    def __str__(self) -> str:
        words = [self.kind, f"L{self.layers}", f"D{self.directions}"]
        words += [f"P{self.num_proj}"] if self.num_proj else []
        return "-".join(words + ["peephole"] * self.peephole)

    @property
    def hidden(self) -> int:
        return self.num_proj or self.units


PLAIN = [Shape(kind, n, d) for kind in KINDS for n in (1, 2, 3) for d in (1, 2)]
PROJECTED = [Shape("lstm", n, d, num_proj=2) for n in (1, 2) for d in (1, 2)]
PEEPHOLE = [Shape("lstm", n, d, peephole=True) for n in (1, 2) for d in (1, 2)]


def random_weights(shape: Shape, rng: np.random.Generator, dtype: Any = "float64") -> Weights:
    gates = GATES[shape.kind]

    def normal(*size: int) -> Array:
        return rng.normal(0, 0.5, size).astype(dtype)

    def cell(inputs: int) -> CellWeights:
        return CellWeights(
            kernel=normal(inputs, gates * shape.units),
            recurrent_kernel=normal(shape.hidden, gates * shape.units),
            bias=normal(gates * shape.units),
            recurrent_bias=normal(gates * shape.units),
            peephole=normal(3, shape.units) if shape.peephole else None,
            projection=normal(shape.units, shape.num_proj) if shape.num_proj else None,
        )

    widths = [shape.inputs] + [shape.directions * shape.hidden] * (shape.layers - 1)
    cells = [cell(width) for width in widths for _ in range(shape.directions)]
    return KINDS[shape.kind](tuple(cells), shape.directions)


def assert_equal(got: Weights, want: Weights) -> None:
    """Bit for bit, with the same dtypes."""
    assert type(got) is type(want)
    assert got.directions == want.directions
    assert getattr(got, "activation", None) == getattr(want, "activation", None)
    for k, (a, b) in enumerate(zip(got.cells, want.cells, strict=True)):
        assert a.arrays().keys() == b.arrays().keys()
        for name, array in b.arrays().items():
            assert_same_bits(a.arrays()[name], array, f"{name} of layers[{k}]")


def assert_same_bits(got: Array, want: Array, name: str = "") -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    assert got.tobytes() == want.tobytes(), name


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
