"""Gradients through a loaded SavedModel, compared with those of the model that was saved."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.keras import LSTM

INPUTS, UNITS = 3, 4
# Relative to the largest element of each gradient. A portable file rounds in another order than
# the kernels: some dozen roundings of float32.
BOUND = 2e-6
LAYERS = {
    "stock": lambda: keras.layers.LSTM(UNITS),
    "own loop": lambda: LSTM(UNITS, activation="selu"),
    "portable": lambda: LSTM(UNITS),
    "fused": lambda: LSTM(UNITS),
}
LOOPS_OF_KERAS = ("stock", "own loop")


def saved(kind: str, folder: Path) -> tuple[Any, Any]:
    """A model, and what was loaded of its file."""
    stack = [keras.Input((None, INPUTS)), keras.layers.Masking(), LAYERS[kind]()]
    model = keras.Sequential([*stack, keras.layers.Dense(2)])
    if kind == "portable":
        export.saved_model(model, folder, portable=True)
    else:
        model.export(folder, verbose=False)
    return model, tf.saved_model.load(folder)


def gradients(function: Any, x: tf.Tensor, variables: list[tf.Variable]) -> list[tf.Tensor]:
    """By the input and by the variables."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(function(x) ** 2)
    return tape.gradient(loss, [x, *variables])


def second_order(function: Any, x: tf.Tensor) -> tf.Tensor:
    """The gradient of a gradient penalty."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        penalty = tf.nn.l2_loss(gradients(function, x, [])[0])
    return tape.gradient(penalty, x)


def assert_close(got: tf.Tensor, wanted: tf.Tensor) -> None:
    assert np.any(wanted)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=BOUND * np.abs(wanted).max())


def example(rng: np.random.Generator) -> tf.Tensor:
    """[B, T, I]; the first row is padded."""
    x = rng.normal(size=(3, 5, INPUTS)).astype("float32")
    x[0, 3:] = 0
    return tf.constant(x)


@pytest.mark.parametrize(
    "kind",
    [
        "stock",
        *(pytest.param(k, marks=pytest.mark.full) for k in ("portable", "own loop", "fused")),
    ],
)
def test_gradients_of_a_loaded_file(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Of all files in eager code; in a tf.function not of Keras' loop."""
    model, loaded = saved(kind, tmp_path / "saved")
    x = example(rng)
    variables = [v for v in loaded.variables if v.dtype.is_floating]
    by_name = {v.path: v.value for v in model.trainable_variables}
    wanted = gradients(model, x, [by_name[v.name.removesuffix(":0")] for v in variables])
    for got, want in zip(gradients(loaded.serve, x, variables), wanted, strict=True):
        assert_close(got, want)
    traced = tf.function(lambda x: gradients(loaded.serve, x, variables))
    if kind in LOOPS_OF_KERAS:
        with pytest.raises(ValueError, match="without handle data"):
            traced(x)
        return
    for got, want in zip(traced(x), wanted, strict=True):
        assert_close(got, want)


@pytest.mark.full
@pytest.mark.parametrize("kind", LAYERS)
def test_second_derivatives_of_a_loaded_file(
    kind: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Not of Keras' loop."""
    model, loaded = saved(kind, tmp_path / "saved")
    x = example(rng)
    if kind in LOOPS_OF_KERAS:
        with pytest.raises(ValueError, match="without handle data"):
            second_order(loaded.serve, x)
    else:
        assert_close(second_order(loaded.serve, x), second_order(model, x))


def jacobian(function: Any, x: tf.Tensor, by_row: bool, use_pfor: bool) -> tf.Tensor:
    with tf.GradientTape(persistent=not use_pfor) as tape:
        tape.watch(x)
        y = function(x)
    compute = tape.batch_jacobian if by_row else tape.jacobian
    return compute(y, x, experimental_use_pfor=use_pfor)


@pytest.mark.full
@pytest.mark.parametrize("by_row", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "kind",
    [
        "fused",
        *(pytest.param(k, marks=pytest.mark.full) for k in ("portable", *LOOPS_OF_KERAS)),
    ],
)
def test_jacobians_of_a_loaded_file(
    kind: str, by_row: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    """By TensorFlow's default of the fused op only; of a portable file without pfor."""
    model, loaded = saved(kind, tmp_path / "saved")
    x = example(rng)
    wanted = jacobian(model, x, by_row, True)
    if kind == "fused":
        assert_close(jacobian(loaded.serve, x, by_row, True), wanted)
    else:
        with pytest.raises(ValueError, match="disabled by setting experimental_use_pfor to False"):
            jacobian(loaded.serve, x, by_row, True)
    traced = tf.function(lambda x: jacobian(loaded.serve, x, by_row, False))
    for function in traced, lambda x: jacobian(loaded.serve, x, by_row, False):
        if kind in LOOPS_OF_KERAS:
            with pytest.raises(ValueError, match="without handle data"):
                function(x)
        else:
            assert_close(function(x), wanted)
