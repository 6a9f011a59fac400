"""The same weights predict the same in every format, also after training in one."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import raw_ops
from tf_lstm_ops.weights import LSTMWeights

from .formats import (
    INPUTS,
    KINDS,
    PEEPHOLE,
    PLAIN,
    ROUNDING,
    ROUNDING_FLOAT32,
    UNITS,
    Array,
    Shape,
    random_weights,
)
from .runs import keras_layers, run_block, run_cudnn, run_keras, set_weights

BATCH, TIME = 3, 5
MODULES = {"own": raw_ops, "stock": tf.raw_ops}
# With one bias, an ICFO op and one with IFCO; forget_bias as the op has it.
BLOCK_OPS: list[dict[str, Any]] = [
    {"gate_order": "ICFO", "forget_bias": 1.0},
    {"gate_order": "ICFO", "forget_bias": 0.1},
    {"gate_order": "IFCO", "forget_bias": 0.0},
]


def random_input(rng: np.random.Generator) -> Array:
    return rng.normal(size=(BATCH, TIME, INPUTS))


def block_options(variant: dict[str, Any]) -> dict[str, Any]:
    return {"forget_bias": variant["forget_bias"]} if variant["gate_order"] == "ICFO" else {}


def assert_predictions(got: Any, want: Any, tolerance: float) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    assert np.abs(want).max() > 0.05  # no comparison of zeros


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("shape", PLAIN, ids=str)
def test_keras_and_cudnn(rng, shape, module):
    weights, x = random_weights(shape, rng), random_input(rng)
    layers = keras_layers(shape)
    set_weights(layers, weights.to_keras())
    got = run_cudnn(shape, weights.to_cudnn(), x, module=MODULES[module])
    assert_predictions(got, run_keras(layers, x), ROUNDING)


@pytest.mark.parametrize("variant", BLOCK_OPS, ids=str)
@pytest.mark.parametrize("shape", [Shape(), PEEPHOLE[0]], ids=str)
def test_keras_and_block_cell(rng, shape, variant):
    weights, x = random_weights(shape, rng), random_input(rng)
    (layer,) = layers = keras_layers(shape)
    set_weights(layers, weights.to_keras())
    options = {**block_options(variant), "use_peephole": shape.peephole}
    cell = weights.to_block_cell(**variant)
    assert_predictions(run_block(cell, x, **options), layer(x), ROUNDING)
    # Stock's ops, in their widest type.
    narrow = random_weights(shape, np.random.default_rng(0), "float32")
    set_weights(layers, narrow.to_keras())
    got = run_block(narrow.to_block_cell(**variant), x, module=tf.raw_ops, **options)
    assert_predictions(got, layer(x), ROUNDING_FLOAT32)


@pytest.mark.parametrize("kind", KINDS)
def test_skipped_input(rng, kind):
    """params of a model that skips its input, and what Keras makes of them."""
    shape = Shape(kind, inputs=INPUTS, units=INPUTS)
    start = random_weights(shape, rng)
    params = start.to_cudnn()[start.cells[0].kernel.size :]  # without the input matrices
    sizes = {"input_size": INPUTS, "units": INPUTS}
    weights = KINDS[kind].from_cudnn(params, **sizes, input_mode="skip_input")
    x, layers = random_input(rng), keras_layers(shape)
    set_weights(layers, weights.to_keras())
    got = run_cudnn(shape, params, x, input_mode="skip_input")
    assert_predictions(got, run_keras(layers, x), ROUNDING)


def trained_shapes() -> Iterator[Any]:
    by_default = {Shape("lstm"), Shape("gru", layers=2, directions=2)}
    for shape in PLAIN:
        if shape.layers < 3:
            yield pytest.param(shape, marks=() if shape in by_default else pytest.mark.full)


@pytest.mark.parametrize("shape", trained_shapes(), ids=str)
def test_trained_in_keras(rng, shape):
    """Stock layers, trained by `fit`, predict the same through cuDNN's op and the block cell."""
    layers, x = keras_layers(shape), random_input(rng)
    before = KINDS[shape.kind].from_keras(layers)
    model = keras.Sequential([keras.Input((TIME, INPUTS), dtype="float64"), *layers])
    model.compile(keras.optimizers.SGD(0.5), "mse", run_eagerly=True)
    target = rng.normal(size=(BATCH, TIME, shape.directions * UNITS))
    model.fit(x, target, epochs=3, verbose=0)
    weights = KINDS[shape.kind].from_keras(layers)
    assert np.abs(weights.to_cudnn() - before.to_cudnn()).max() > 1e-3  # it has learnt
    want = run_keras(layers, x)
    assert_predictions(run_cudnn(shape, weights.to_cudnn(), x), want, ROUNDING)
    if shape == Shape("lstm"):
        for variant in BLOCK_OPS:
            cell = weights.to_block_cell(**variant)
            assert_predictions(run_block(cell, x, **block_options(variant)), want, ROUNDING)


def train(loss: Any, variables: list[tf.Variable], steps: int = 3) -> list[float]:
    """Gradient descent; returns the loss of each step."""
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            value = loss()
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(0.5 * gradient)
        losses.append(float(value))
    return losses


@pytest.mark.sampled
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("shape", [s for s in PLAIN if s.layers < 3], ids=str)
def test_trained_through_cudnn(rng, shape, module):
    """params, trained through CudnnRNNV3, predict the same in Keras and the block cell."""
    start, x = random_weights(shape, rng), random_input(rng)
    params = tf.Variable(start.to_cudnn())
    target = rng.normal(size=(BATCH, TIME, shape.directions * UNITS))

    def loss():
        output = run_cudnn(shape, params, x, module=MODULES[module])
        return tf.reduce_mean((output - target) ** 2)

    losses = train(loss, [params])
    assert losses[0] > losses[-1] > 0
    weights = KINDS[shape.kind].from_cudnn(
        params,
        input_size=INPUTS,
        units=UNITS,
        num_layers=shape.layers,
        directions=shape.directions,
    )
    want = run_cudnn(shape, params, x)
    layers = keras_layers(shape)
    set_weights(layers, weights.to_keras())
    assert_predictions(run_keras(layers, x), want, ROUNDING)
    if shape == Shape("lstm"):
        cell = weights.to_block_cell(**BLOCK_OPS[0])
        assert_predictions(run_block(cell, x, **block_options(BLOCK_OPS[0])), want, ROUNDING)


@pytest.mark.parametrize("variant", BLOCK_OPS, ids=str)
@pytest.mark.parametrize("peephole", [False, True])
def test_trained_through_the_block_cell(rng, peephole, variant):
    """The arguments of the block-cell ops predict the same in Keras and, plain, through cuDNN."""
    shape, x = Shape(peephole=peephole), random_input(rng)
    cell = random_weights(shape, rng).to_block_cell(**variant)
    variables = cell._make(map(tf.Variable, cell))
    target = rng.normal(size=(BATCH, TIME, UNITS))
    options = {**block_options(variant), "use_peephole": peephole}
    losses = train(
        lambda: tf.reduce_mean((run_block(variables, x, **options) - target) ** 2), [*variables]
    )
    assert losses[0] > losses[-1] > 0
    trained = variables if peephole else variables[:2]
    weights = LSTMWeights.from_block_cell(*trained, **variant)
    want = run_block(variables, x, **options)
    layers = keras_layers(shape)
    set_weights(layers, weights.to_keras())
    assert_predictions(run_keras(layers, x), want, ROUNDING)
    if not peephole:
        assert_predictions(run_cudnn(shape, weights.to_cudnn(), x), want, ROUNDING)
