"""A second import of the package in one process, and gradients that others register."""

import subprocess
import sys

import pytest

RELOAD = "importlib.reload(tf_lstm_ops)"
SECOND = """
for name in [name for name in sys.modules if name.partition(".")[0] == "tf_lstm_ops"]:
    del sys.modules[name]
import tf_lstm_ops
"""
# The layer, its first and second derivative, and rows of tf.vectorized_map, beside the stock layer.
LAYERS = """
import keras, numpy as np
x = tf.constant(np.random.default_rng(0).normal(size=(3, 2, 5, 4)), "float32")
stock = keras.layers.LSTM(4, use_cudnn=False)
stock.build([2, 5, 4])
layer = tf_lstm_ops.keras.LSTM(4)
layer.build([2, 5, 4])
layer.set_weights(stock.get_weights())
assert not any(tf_lstm_ops.keras.fallback_reasons(layer).values())

def derivatives(layer):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = layer(x[0])
        first = inner.gradient(y, x)
        second = outer.gradient(first, x)
    return y, first, second

for ours, theirs in zip(derivatives(layer), derivatives(stock), strict=True):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)  # float32, sums of some ten terms below 1
rows = tf.vectorized_map(layer, x)
np.testing.assert_allclose(rows, [layer(row) for row in x], atol=1e-6)
"""


def run(*programs: str) -> None:
    """Runs programs in one new process."""
    start = "import importlib, sys\nimport tensorflow as tf\n"
    command = [sys.executable, "-c", start + "\n".join(programs)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    "again", [pytest.param(RELOAD, id="reload"), pytest.param(SECOND, id="second import")]
)
@pytest.mark.full
def test_the_package_works_after(again: str) -> None:
    run("import tf_lstm_ops", LAYERS, again, LAYERS, GRADIENTS, OURS_WINS)


# Gradients of ones, which none of these ops has, as a fork of tf.contrib registers them.
OTHERS = """
def ones(op, *grads):
    return [None if not x.dtype.is_floating else tf.ones_like(x) for x in op.inputs]

for op in "LSTMBlockCell", "LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2":
    tf.RegisterGradient(op)(ones)
"""
OURS = "import tf_lstm_ops"
GRADIENTS = """
import numpy as np
ones = lambda *shape: tf.ones(shape)
arguments = dict(x=ones(2, 3), cs_prev=ones(2, 4), h_prev=ones(2, 4), w=ones(7, 16), b=ones(16))
arguments |= dict(wci=ones(4), wcf=ones(4), wco=ones(4))

def gradient(op):
    x = arguments["x"]
    with tf.GradientTape() as tape:
        tape.watch(x)
        h = op(**arguments).h
    return tape.gradient(h, x)

own = gradient(tf_lstm_ops.raw_ops.LSTMBlockCell)
assert not np.any(own == 1)
stock = gradient(tf.raw_ops.LSTMBlockCell)
in_graph = tf.function(gradient, autograph=False)(tf.raw_ops.LSTMBlockCell)
np.testing.assert_array_equal(stock, in_graph)
"""
# Stock rounds in another order.
OURS_WINS = "np.testing.assert_allclose(stock, own, atol=1e-6)"
THEIRS_WINS = "assert np.all(stock == 1)"


@pytest.mark.parametrize(
    "order", [pytest.param((OURS, OTHERS), id="ours"), pytest.param((OTHERS, OURS), id="theirs")]
)
@pytest.mark.full
def test_a_gradient_of_others_wins_whoever_is_first(order: tuple[str, str]) -> None:
    run(*order, GRADIENTS, THEIRS_WINS)
