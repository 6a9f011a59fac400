"""Jacobians and Hessians by TensorFlow's default, pfor, against its loop and finite differences."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import raw_ops

B, T, I, H = 2, 3, 2, 2  # noqa: E741
MAKES = [tf_lstm_ops.keras.LSTM, tf_lstm_ops.keras.GRU]
# Sums of some 30 products of about 1 in float64, in another order.
TOLERANCE = {"rtol": 0, "atol": 1e-13}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def built(make: Any, rng: Any, **options: Any) -> Any:
    layer = make(H, dtype="float64", **options)
    layer.build((B, T, I))
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return layer


@pytest.mark.parametrize("make", MAKES)
def test_jacobian(make, rng):
    layer, x = built(make, rng, return_sequences=True), tf.constant(rng.normal(size=(B, T, I)))
    sources = [x, *(w.value for w in layer.trainable_weights)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layer(x)
    got = tape.jacobian(y, sources)
    wanted = tape.jacobian(y, sources, experimental_use_pfor=False)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, **TOLERANCE)
    by_row = tape.batch_jacobian(y, x)
    for row in range(B):
        np.testing.assert_allclose(by_row[row], got[0][row, :, :, row], **TOLERANCE)


def gradient(layer: Any, source: tf.Tensor, x: tf.Tensor, mask: Any = None) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(source)
        loss = tf.reduce_sum(tf.sin(layer(x, mask=mask)))
    return tape.gradient(loss, source)


def finite_differences(function: Any, x: tf.Tensor) -> np.ndarray:
    """The Jacobian of a function of x, by central differences."""
    step, values = 1e-5, x.numpy()
    columns = []
    for index in np.ndindex(values.shape):
        shift = np.zeros_like(values)
        shift[index] = step
        difference = function(tf.constant(values + shift)) - function(tf.constant(values - shift))
        columns.append(difference.numpy() / (2 * step))
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *values.shape)


@pytest.mark.parametrize("masked", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(MAKES[0], marks=pytest.mark.slow),
        pytest.param(MAKES[1], marks=pytest.mark.full),
    ],
)
def test_hessian_of_input(make, masked, rng):
    layer, x = built(make, rng), tf.constant(rng.normal(size=(B, T, I)))
    mask = tf.constant([[True, True, False], [True, False, True]]) if masked else None

    @tf.function
    def hessian(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            first = gradient(layer, x, x, mask)
        return tape.jacobian(first, x)

    wanted = finite_differences(lambda x: gradient(layer, x, x, mask), x)
    # The truncation error is step² times third derivatives; rounding: 1e-16 / step.
    np.testing.assert_allclose(hessian(x), wanted, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKES)
def test_hessian_of_weights(make, rng):
    layer, x = built(make, rng), tf.constant(rng.normal(size=(B, T, I)))
    kernel = layer.cell.recurrent_kernel

    @tf.function
    def hessian() -> tf.Tensor:
        with tf.GradientTape() as tape:
            first = gradient(layer, kernel.value, x)
        return tape.jacobian(first, kernel.value)

    got, at = hessian(), tf.identity(kernel.value)

    def of_kernel(value: tf.Tensor) -> tf.Tensor:
        kernel.assign(value)
        return gradient(layer, kernel.value, x)

    wanted = finite_differences(of_kernel, at)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("CudnnRNN", marks=pytest.mark.full),
        pytest.param("BlockLSTM", marks=pytest.mark.slow),
        pytest.param("MPSGraphLSTM", marks=pytest.mark.slow),
    ],
)
def test_hessian_of_raw_op(name, rng):
    def random(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(0, 0.5, size=shape))

    x = random(T, B, I)
    state, peepholes = random(B, H), {n: random(H) for n in ("wci", "wcf", "wco")}
    w, b, params = random(I + H, 4 * H), random(4 * H), random(4 * H * (I + H + 2))
    recurrent, weight = random(4 * H, H), random(4 * H, I)

    def call(x: tf.Tensor) -> tf.Tensor:
        if name == "BlockLSTM":
            states = {"cs_prev": state, "h_prev": state}
            length = np.int64(T)
            return raw_ops.BlockLSTM(
                x=x, seq_len_max=length, w=w, b=b, use_peephole=True, **states, **peepholes
            ).h
        if name == "CudnnRNN":
            h = state[tf.newaxis]
            return raw_ops.CudnnRNN(input=x, input_h=h, input_c=h, params=params).output
        return raw_ops.MPSGraphLSTM(
            source=x, recurrent_weight=recurrent, input_weight=weight
        ).output

    def first(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(call(x)))
        return tape.gradient(loss, x)

    @tf.function
    def hessian(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            g = first(x)
        return tape.jacobian(g, x)

    np.testing.assert_allclose(hessian(x), finite_differences(first, x), rtol=0, atol=1e-9)
