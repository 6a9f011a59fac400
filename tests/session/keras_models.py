"""Models with random weights for the tests of sessions, and their comparison with Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from tf_lstm_ops.inference import Session

BATCH = 3
C = 6  # features
ROWS = 11  # of embeddings


def with_random_weights(model: keras.Model, rng: np.random.Generator) -> keras.Model:
    """No weight keeps an initial zero or one. Variances are positive."""
    for weight in model.weights:
        values = rng.normal(scale=0.5, size=weight.shape)
        weight.assign(np.abs(values) + 0.5 if "variance" in weight.path else values)
    return model


def _data(tensor: Any, rng: np.random.Generator, steps: int) -> np.ndarray:
    shape = (BATCH, *(steps if size is None else size for size in tensor.shape[1:]))
    if tensor.dtype.startswith("int"):
        return rng.integers(0, ROWS, shape).astype("int32")
    if tensor.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.normal(size=shape).astype("float32")


def data_of(model: keras.Model, rng: np.random.Generator, steps: int = 7) -> Any:
    """The input of a model, or the list of its inputs."""
    made = [_data(each, rng, steps) for each in model.inputs]
    return made if len(made) > 1 else made[0]


def check(model: keras.Model, rng: np.random.Generator, x: Any = None) -> Session:
    """Compares a session with the model, without a mask of the call."""
    with_random_weights(model, rng)
    x = data_of(model, rng) if x is None else x
    session = Session(model)
    want = keras.tree.map_structure(np.asarray, model(x))
    assert_close(session(x), want)
    return session


def assert_close(got: Any, want: Any) -> None:
    keras.tree.assert_same_structure(
        keras.tree.lists_to_tuples(got), keras.tree.lists_to_tuples(want)
    )
    for a, b in zip(keras.tree.flatten(got), keras.tree.flatten(want), strict=True):
        assert a.shape == b.shape
        # float32: layers with sums of some ten terms of about 1, one behind the other
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(b).max()))


def floats(*shape: int | None) -> Any:
    """An input of a model, [B, T, C] or of this shape."""
    return keras.Input(shape or (None, C))


def ids(*shape: int | None) -> Any:
    """An input of indices, [B, T] or of this shape."""
    return keras.Input(shape or (None,), dtype="int32")


def embedded(x: Any, units: int = C, mask_zero: bool = True) -> Any:
    """Rows of a table by the indices x."""
    return keras.layers.Embedding(ROWS, units, mask_zero=mask_zero)(x)
