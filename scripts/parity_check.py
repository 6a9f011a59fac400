"""Compares the installed package with stock TensorFlow and Keras; prints one line of JSON.

try_tensorflow_versions.py runs it with each version; it works on its own too.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops

BATCH, TIME, INPUTS, UNITS = 3, 7, 5, 9
# Sums of a few dozen products in float32, through seven steps.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


def random(*shape: int) -> tf.Tensor:
    rng = np.random.default_rng(shape)
    return tf.constant(rng.standard_normal(shape), tf.float32)


def block_lstm_arguments() -> dict[str, tf.Tensor]:
    return {
        "seq_len_max": tf.constant(TIME, tf.int64),
        "x": random(TIME, BATCH, INPUTS),
        "cs_prev": random(BATCH, UNITS),
        "h_prev": random(BATCH, UNITS) / 2,
        "w": random(INPUTS + UNITS, 4 * UNITS) / 3,
        "wci": random(UNITS) / 3,
        "wcf": random(UNITS) / 4,
        "wco": random(UNITS) / 5,
        "b": random(4 * UNITS),
    }


def check_forward() -> None:
    arguments = block_lstm_arguments()
    options = {"use_peephole": True, "cell_clip": 1.0}
    for got, want in zip(
        tf_lstm_ops.raw_ops.BlockLSTM(**arguments, **options),
        tf.raw_ops.BlockLSTM(**arguments, **options),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, **TOLERANCE)


def check_gradient() -> None:
    def gradients(op):
        arguments = block_lstm_arguments()
        variables = [value for value in arguments.values() if value.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(variables)
            loss = tf.reduce_sum(op(**arguments, use_peephole=True, cell_clip=-1.0).h ** 2)
        return tape.gradient(loss, variables)

    for got, want in zip(
        gradients(tf_lstm_ops.raw_ops.BlockLSTM), gradients(tf.raw_ops.BlockLSTM), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def check_layer(name: str) -> None:
    x = random(BATCH, TIME, INPUTS)
    ours = getattr(tf_lstm_ops.keras, name)(UNITS, return_sequences=True)
    stock = getattr(keras.layers, name)(UNITS, return_sequences=True)
    model = keras.Sequential([keras.Input((None, INPUTS)), keras.layers.Masking(), ours])
    reference = keras.Sequential([keras.Input((None, INPUTS)), keras.layers.Masking(), stock])
    reference.set_weights(model.get_weights())
    assert ours.uses_fused_op, ours.fallback_reason
    np.testing.assert_allclose(
        model.predict(x, verbose=0), reference.predict(x, verbose=0), **TOLERANCE
    )
    for m in (model, reference):
        m.compile("sgd", "mse")
        m.fit(x, random(BATCH, TIME, UNITS), epochs=2, verbose=0)
    for got, want in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(got, want, **TOLERANCE)


def check_lstm() -> None:
    check_layer("LSTM")


def check_gru() -> None:
    check_layer("GRU")


def check_cudnn() -> None:
    """The stock op on the CPU, with gradients, beside a bidirectional Keras layer."""
    layer = keras.layers.Bidirectional(keras.layers.LSTM(UNITS, return_sequences=True))
    x = random(BATCH, TIME, INPUTS)
    lengths = tf.constant([TIME, 1, TIME - 2])
    mask = tf.sequence_mask(lengths, TIME)
    weighting = tf.cast(mask, tf.float32)[..., tf.newaxis] * random(BATCH, TIME, 2 * UNITS)
    with tf.GradientTape() as tape:
        tape.watch(x)
        want = layer(x, mask=mask) * weighting
    want_gradient = tape.gradient(want, x)
    params = tf.constant(tf_lstm_ops.weights.LSTMWeights.from_keras(layer).to_cudnn())
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = tf.raw_ops.CudnnRNNV3(
            input=x,
            input_h=tf.zeros([BATCH, 2, UNITS]),
            input_c=tf.zeros([BATCH, 2, UNITS]),
            params=params,
            sequence_lengths=lengths,
            direction="bidirectional",
            time_major=False,
        )
        got = result.output * weighting
    np.testing.assert_allclose(got, want, **TOLERANCE)
    np.testing.assert_allclose(tape.gradient(got, x), want_gradient, rtol=1e-4, atol=1e-5)


def check_mpsgraph() -> None:
    """Beside a bidirectional Keras layer, with gradients of first and second order."""
    layer = keras.layers.Bidirectional(keras.layers.LSTM(UNITS, return_sequences=True))
    x = random(TIME, BATCH, INPUTS)

    def by_keras(x: tf.Tensor) -> tf.Tensor:
        return tf.transpose(layer(tf.transpose(x, [1, 0, 2])), [1, 0, 2])

    by_keras(x)
    weights = tf_lstm_ops.weights.LSTMWeights.from_keras(layer).to_mpsgraph()._asdict()

    def by_op(x: tf.Tensor) -> tf.Tensor:
        op = tf_lstm_ops.raw_ops.MPSGraphLSTM
        return op(source=x, bidirectional=True, training=True, **weights).output

    def derivatives(function: Callable[[tf.Tensor], tf.Tensor]) -> list[tf.Tensor]:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
                loss = tf.reduce_sum(y**2)
            gradient = inner.gradient(loss, x)
            penalty = tf.reduce_sum(gradient**2)
        return [y, gradient, outer.gradient(penalty, x)]

    for got, want in zip(derivatives(by_op), derivatives(by_keras), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def check_xla() -> None:
    layer = tf_lstm_ops.keras.LSTM(UNITS, return_sequences=True)
    x = random(BATCH, TIME, INPUTS)
    want = layer(x)
    np.testing.assert_allclose(tf.function(layer, jit_compile=True)(x), want, **TOLERANCE)


def check_portable() -> None:
    model = keras.Sequential([keras.Input((None, INPUTS)), tf_lstm_ops.keras.GRU(UNITS)])
    x = random(BATCH, TIME, INPUTS)
    with tempfile.TemporaryDirectory() as folder:
        tf_lstm_ops.export.saved_model(model, folder, portable=True)
        served = tf.saved_model.load(folder)
        np.testing.assert_allclose(served.serve(x), model(x), **TOLERANCE)


def check_override() -> None:
    """The last one: it cannot be taken back."""
    tf_lstm_ops.stock.override()
    arguments = block_lstm_arguments()
    arguments.pop("seq_len_max")
    x = arguments.pop("x")[0]
    ops = (tf.raw_ops.LSTMBlockCell, tf_lstm_ops.raw_ops.LSTMBlockCell)
    stock, own = (op(x=x, **arguments, use_peephole=True) for op in ops)
    for got, want in zip(stock, own, strict=True):
        np.testing.assert_array_equal(got, want)


CHECKS = (
    check_forward,
    check_gradient,
    check_lstm,
    check_gru,
    check_cudnn,
    check_mpsgraph,
    check_xla,
    check_portable,
    check_override,
)


def main() -> int:
    report = {
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "python": platform.python_version(),
        "library": hashlib.sha256(tf_lstm_ops._library.path().read_bytes()).hexdigest(),
        "failures": [],
    }
    for check in CHECKS:
        try:
            check()
        except Exception as error:
            report["failures"].append(f"{check.__name__}: {type(error).__name__}: {error}")
    print(json.dumps(report))
    return len(report["failures"])


if __name__ == "__main__":
    sys.exit(main())
