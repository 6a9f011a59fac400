"""Writes files of weights, and runs the weights that this package reads."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights

Array = np.ndarray
# Sums of the same float64 products in another order, five steps deep, of values around 1.
ROUNDING = 1e-12


def checkpoint(path: Path, arrays: Mapping[str, Array], *, version: int = 2) -> Path:
    """A checkpoint of names, as TensorFlow 1 writes it."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [
            tf.compat.v1.Variable(array, name=name, dtype=array.dtype)
            for name, array in arrays.items()
        ]
        session.run(tf.compat.v1.variables_initializer(made))
        saver = tf.compat.v1.train.Saver(
            dict(zip(arrays, made, strict=True)), write_version=version
        )
        saver.save(session, str(path), write_meta_graph=False)
    return path


def frozen_graph(path: Path, arrays: Mapping[str, Array]) -> Path:
    with tf.Graph().as_default() as graph:
        for name, array in arrays.items():
            tf.constant(array, name=name)
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def hdf5(path: Path, arrays: Mapping[str, Array]) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def computed(weights: LSTMWeights | GRUWeights, x: Array) -> Array:
    """The outputs of the weights in float64, by this package's layers. x: [B, T, I]."""
    wide = [
        CellWeights(**{name: a.astype("float64") for name, a in cell.arrays().items()})
        for cell in weights.cells
    ]  # before the two biases are added
    weights = dataclasses.replace(weights, cells=tuple(wide))
    for k in range(weights.num_layers):
        d = weights.directions
        one = dataclasses.replace(weights, cells=weights.cells[k * d : (k + 1) * d])
        halves = [dataclasses.replace(one, cells=(c,), directions=1) for c in one.cells]
        x = np.concatenate([_direction(half, x, bool(n)) for n, half in enumerate(halves)], -1)
    return x


def _direction(weights: LSTMWeights | GRUWeights, x: Array, backwards: bool) -> Array:
    options = {"return_sequences": True, "dtype": "float64", "go_backwards": backwards}
    if isinstance(weights, GRUWeights):
        layer = tf_lstm_ops.keras.GRU(weights.units, reset_after=weights.reset_after, **options)
    else:
        layer = tf_lstm_ops.keras.LSTM(
            weights.units,
            use_peephole=weights.cells[0].peephole is not None,
            projection_size=weights.projection_size,
            **options,
        )
    layer.build(x.shape)
    layer.set_weights(weights.to_keras())
    outputs = np.array(layer(x))
    return outputs[:, ::-1] if backwards else outputs
