"""Derivatives of every order: those of order 1 to 4, of each family of ops and layers.

The derivative along a line, of each order, is the finite difference of the one below it. The tests
of each family compare the first two orders with the oracle.
"""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from pages import ROOT
from tf_lstm_ops import raw_ops
from tf_lstm_ops.keras import GRU, LSTM

B, T, I, H = 2, 2, 2, 3  # noqa: E741  the letters of the documentation
ORDERS = 4
Function = Callable[[tf.Tensor], tf.Tensor]


def layer(kind: type, **options: object) -> Function:
    """A layer of x [B, T, I] with weights of the seed."""
    made = kind(H, dtype="float64", **options)
    made.build((B, T, I))
    rng = np.random.default_rng(1)
    made.set_weights([rng.normal(scale=0.5, size=w.shape) for w in made.weights])
    return made


def values(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(2).normal(scale=0.5, size=shape))


def block_cell(x: tf.Tensor) -> tf.Tensor:
    w, b, peephole = values(I + H, 4 * H), values(4 * H), values(H)
    state = {"cs_prev": values(B, H), "h_prev": values(B, H)}
    cell = {"w": w, "b": b, "wci": peephole, "wcf": peephole, "wco": peephole}
    return raw_ops.LSTMBlockCell(x=x[:, 0], **state, **cell, use_peephole=True).h


def block_sequence(x: tf.Tensor) -> tf.Tensor:
    w, b, peephole = values(I + H, 4 * H), values(4 * H), values(H)
    state = {"cs_prev": values(B, H), "h_prev": values(B, H)}
    cell = {"w": w, "b": b, "wci": peephole, "wcf": peephole, "wco": peephole}
    time_major = tf.transpose(x, [1, 0, 2])
    length = tf.constant(T, tf.int64)
    return raw_ops.BlockLSTMV2(seq_len_max=length, x=time_major, **state, **cell).h


def cudnn(x: tf.Tensor) -> tf.Tensor:
    params = values(4 * H * (I + H) + 8 * H)
    states = {"input_h": values(1, B, H), "input_c": values(1, B, H)}
    time_major = tf.transpose(x, [1, 0, 2])
    return raw_ops.CudnnRNNV3(
        input=time_major, **states, params=params, sequence_lengths=[T] * B
    ).output


def mpsgraph(x: tf.Tensor) -> tf.Tensor:
    time_major = tf.transpose(x, [1, 0, 2])
    weights = {"recurrent_weight": values(4 * H, H), "input_weight": values(4 * H, I)}
    return raw_ops.MPSGraphLSTM(source=time_major, **weights)[0]


FUNCTIONS: dict[str, Callable[[], Function]] = {
    "keras.LSTM": lambda: layer(LSTM),
    "keras.LSTM, more options": lambda: layer(
        LSTM, use_peephole=True, projection_size=2, recurrent_activation="hard_sigmoid"
    ),
    "keras.GRU": lambda: layer(GRU),
    "keras.GRU, more options": lambda: layer(
        GRU, reset_after=False, activation="silu", recurrent_activation="hard_sigmoid"
    ),
    "LSTMBlockCell": lambda: block_cell,
    "BlockLSTMV2": lambda: block_sequence,
    "CudnnRNNV3": lambda: cudnn,
    "MPSGraphLSTM": lambda: mpsgraph,
}


def derivative(function: Function, order: int) -> Function:
    """That of a function of a number."""
    if order == 0:
        return function

    below = derivative(function, order - 1)

    def result(s: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(s)
            value = below(s)
        return tape.gradient(value, s)

    return result


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_order_is_the_difference_of_the_one_below(name: str) -> None:
    function = FUNCTIONS[name]()
    x, direction = values(B, T, I), tf.constant(np.random.default_rng(3).normal(size=(B, T, I)))

    def along(s: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.sin(function(x + s * direction)))

    step = 1e-4
    for order in range(1, ORDERS + 1):
        got = float(derivative(along, order)(tf.constant(0.0, tf.float64)))
        ends = [
            float(derivative(along, order - 1)(tf.constant(s, tf.float64))) for s in (step, -step)
        ]
        # A central difference has an error of step^2, 1e-8, times the third derivative, and of the
        # rounding 1e-15 / step.
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-6)
        assert abs(got) > 1e-3


def test_the_pages_say_every_order() -> None:
    """As README.md; a page that says "first and second" would say less."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "* [Derivatives of every order](docs/reference/features.md) of the rec" in readme
    changes = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    assert changes.count("gradients of every order") == 1
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs" / "reference").glob("*.md")]
    for page in pages:
        text = " ".join(page.read_text(encoding="utf-8").split())
        assert "first and second order" not in text, page.name
        assert "first and second derivative" not in text, page.name
